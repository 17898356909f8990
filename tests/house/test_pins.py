"""constraints.txt pins exactly what the extras and the tests bring."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.house.files import ROOT

# Which of these come along depends on the build of torch and on the machine.
OF_CUDA = re.compile(r"nvidia-|cuda-|triton")


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    written = [line for line in lines if line and not line.startswith("#")]
    return dict(line.split("==") for line in written)


def needed() -> set[str]:
    """Every distribution that the project, its extras and their own needs bring here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    own = [*project["dependencies"], *(line for lines in extras.values() for line in lines)]
    found: set[str] = set()
    waiting = [Requirement(line) for line in own]
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        requirement = waiting.pop()
        key = (canonicalize_name(requirement.name), frozenset(requirement.extras))
        if key in seen or key[0] == canonicalize_name(project["name"]):
            continue
        seen.add(key)
        found.add(key[0])
        waiting += applicable(*key)
    return found


def applicable(name: str, extras: Iterable[str]) -> Iterator[Requirement]:
    try:
        lines = distribution(name).requires or []
    except PackageNotFoundError:
        return
    for requirement in map(Requirement, lines):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield requirement


def test_everything_that_gets_installed_is_pinned():
    missing = needed() - {canonicalize_name(name) for name in pins()}

    assert {name for name in missing if not OF_CUDA.match(name)} == set()


def test_nothing_else_is_pinned():
    pinned = {canonicalize_name(name) for name in pins()}

    assert {name for name in pinned - needed() if not OF_CUDA.match(name)} == set()


def test_pins_serve_every_build_of_torch():
    assert not any("+" in version for version in pins().values())


def test_what_runs_here_is_what_is_pinned():
    here = {name: distribution(name).version.partition("+")[0] for name in pins()}

    assert here == pins()
