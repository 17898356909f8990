"""Node.js, which ``python -m tests.system`` installs."""

import os
import shutil
import subprocess

import pytest


def node(*arguments: str, **variables: str) -> str:
    """Standard output; links are kept, so that ``workbench/widgets`` lies beside ``pages``."""
    program = shutil.which("node") or shutil.which("nodejs")
    if program is None:
        pytest.fail("Node.js is missing: run `python -m tests.system` first.")
    done = subprocess.run(
        [program, "--preserve-symlinks", "--preserve-symlinks-main", *arguments],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    return done.stdout
