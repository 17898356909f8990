"""The types that the scripts' comments give hold: TypeScript reads them, and builds nothing."""

import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
COMPILER = "tsc"
HOW = "npm install --no-save typescript@5.9.3 beside the Makefile, or Debian's node-typescript"


def compiler() -> str | None:
    """TypeScript of this checkout, else one on PATH."""
    own = HERE.parents[1] / "node_modules/.bin" / COMPILER
    return str(own) if own.exists() else shutil.which(COMPILER)


@pytest.mark.slow
@pytest.mark.skipif(compiler() is None, reason=f"TypeScript is not here; optional: {HOW}")
def test_every_script_keeps_its_types():
    done = subprocess.run(
        [str(compiler()), "--project", str(HERE / "tsconfig.json")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "")
