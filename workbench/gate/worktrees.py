"""Two revisions of a repository beside each other, in folders that are gone afterwards."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from workbench.errors import GateError

GIT_LIMIT_S = 300
DEPENDENCIES = (
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "constraints.txt",
    "requirements*.txt",
    "requirements/*.txt",
    "environment*.y*ml",
    "*.lock",
    "Pipfile",
)
"""Files that say what is installed: where they differ, one environment does not fit both."""


@dataclass(frozen=True, kw_only=True)
class Worktrees:
    """Both revisions, checked out."""

    root: Path
    """The user's own working tree, which is only read."""
    folders: tuple[Path, Path]
    """Where the caller's current folder is in each revision."""
    tops: tuple[Path, Path]
    commits: tuple[str, str]
    notes: tuple[str, ...]


@contextmanager
def worktrees(base: str, head: str, *, at: Path | None = None) -> Iterator[Worktrees]:
    """Check two revisions out into a temporary folder, and take both away again.

    Nothing of the working tree, its index or its branches is touched; no hook runs.

    Raises:
        GateError: There is no repository, or no such revision.
    """
    here = Path.cwd() if at is None else at
    root = Path(_git(here, "rev-parse", "--show-toplevel"))
    commits = (_commit(root, base), _commit(root, head))
    inside = here.resolve().relative_to(root.resolve())
    notes = _notes(root, commits)
    folder = Path(tempfile.mkdtemp(prefix="workbench-gate-"))
    tops = (folder / "base", folder / "head")
    try:
        for top, commit in zip(tops, commits, strict=True):
            _git(root, "worktree", "add", "--quiet", "--detach", str(top), commit)
        found = [top / inside if (top / inside).is_dir() else top for top in tops]
        yield Worktrees(
            root=root, folders=(found[0], found[1]), tops=tops, commits=commits, notes=notes
        )
    finally:
        for top in tops:
            with suppress(GateError):
                _git(root, "worktree", "remove", "--force", "--force", str(top))
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(GateError):
            _git(root, "worktree", "prune")


def _commit(root: Path, revision: str) -> str:
    if revision.startswith("-"):
        raise GateError(f"{revision!r} is no revision: give a branch, tag or commit.")
    return _git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", what=revision)


def _notes(root: Path, commits: Sequence[str]) -> tuple[str, ...]:
    said = []
    changed = _git(root, "diff", "--name-only", *commits, "--", *DEPENDENCIES).split("\n")
    if any(changed):
        said.append(
            f"dependencies may differ ({', '.join(filter(None, changed))}): both were measured "
            "with what is installed here"
        )
    if _git(root, "status", "--porcelain", "--untracked-files=no"):
        said.append("changes that are not committed were not measured")
    if (root / ".gitmodules").exists():
        said.append("submodules are not checked out")
    return tuple(said)


def _git(at: Path, *arguments: str, what: str | None = None) -> str:
    command = ["git", "-c", "core.hooksPath=/dev/null", "-C", str(at), *arguments]
    try:
        done = subprocess.run(  # noqa: S603 - git, and no shell
            command, capture_output=True, text=True, check=False, timeout=GIT_LIMIT_S
        )
    except FileNotFoundError:
        raise GateError("git is not installed: --measure-both needs it.") from None
    except subprocess.TimeoutExpired:
        raise GateError(f"git {arguments[0]} took longer than {GIT_LIMIT_S} s.") from None
    if done.returncode != 0:
        if what is not None:
            raise GateError(
                f"{what!r} is no revision of {at.name}: give a branch, tag or commit; in CI fetch "
                "it first (a shallow clone has one commit only)."
            )
        said = done.stderr.strip().splitlines()
        raise GateError(f"git {arguments[0]} failed: {said[-1] if said else done.returncode}.")
    return done.stdout.strip()
