"""The types that the scripts' comments give hold: TypeScript reads them, and builds nothing."""

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
COMPILER = "tsc"
HOW = "npm install --no-save typescript@5.9.3 beside the Makefile (Debian's 4.8 is too old)"


def compiler() -> str | None:
    """TypeScript of this checkout, else one on PATH."""
    own = HERE.parents[1] / "node_modules/.bin" / COMPILER
    return str(own) if own.exists() else shutil.which(COMPILER)


@pytest.mark.soak
def test_every_script_keeps_its_types() -> None:
    started = compiler()
    assert started, f"TypeScript is missing: {HOW}"
    done = subprocess.run(
        [started, "--project", str(HERE / "tsconfig.json")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "")
