"""The files that make up the project, and copies of them to try things on."""

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def project_files() -> list[str]:
    """Paths below the root, with ``/``: tracked, or new and not ignored; symlinks count as one."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    names = [name for name in listed.split("\0") if name]
    return sorted(name for name in names if (ROOT / name).is_symlink() or (ROOT / name).is_file())


def copy_project(target: Path) -> Path:
    """A copy as a fresh clone would be: symlinks stay symlinks, nothing built is there."""
    for name in project_files():
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, place, follow_symlinks=False)
    return target
