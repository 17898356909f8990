"""A text corpus from the English prose and the source code that ship with Python itself."""

import ast
import codecs
import inspect
import platform
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from workbench.datasets.cache import Recipe, Source, made
from workbench.datasets.packages import checksum
from workbench.errors import DatasetError

RECIPE = 1
LEAST_BYTES = 500_000
LEFT_OUT = {"site-packages", "dist-packages", "test", "tests", "idlelib", "lib2to3", "turtledemo"}
"""Not part of the library, or not written to be read."""
BUILD_FACTS = "_sysconfigdata"
"""Generated, and full of the paths of the machine that built this Python."""


def text() -> Path:
    """Folder with ``prose.txt`` and ``source.txt``, made on first use, in UTF-8.

    ``prose.txt`` holds the language reference that ``help()`` shows, the licence, the Zen of
    Python, and the docstrings of the standard library; ``source.txt`` its source code. The same
    call gives the same bytes under the same version of Python.

    Raises:
        DatasetError: This Python has no readable library, or the cache cannot be written.
    """
    return made(
        Recipe(
            name="text",
            version=RECIPE,
            parameters={},
            versions={
                "python": platform.python_version(),
                "implementation": platform.python_implementation(),
                "system": platform.system(),
            },
            make=_write,
        )
    )


def _write(folder: Path) -> list[Source]:
    library = Path(sysconfig.get_path("stdlib"))
    sources = []
    with (
        (folder / "prose.txt").open("w", encoding="utf-8", newline="\n") as prose,
        (folder / "source.txt").open("w", encoding="utf-8", newline="\n") as source,
    ):
        for piece in _plain_prose(library):
            prose.write(piece.strip() + "\n\n")
        for path in _modules(library):
            code = _read(path)
            if code is None:
                continue
            source.write(code.strip() + "\n\n")
            for docstring in _docstrings(code):
                prose.write(docstring.strip() + "\n\n")
            sources.append(checksum(path, path.relative_to(library).as_posix()))
    for name in ("prose.txt", "source.txt"):
        if (folder / name).stat().st_size < LEAST_BYTES:
            raise DatasetError(
                f"The text corpus needs Python's standard library as files, but {name} would hold "
                f"less than {LEAST_BYTES} bytes. Use a full Python installation."
            )
    return sources


def _plain_prose(library: Path) -> Iterator[str]:
    """What ``help``, ``license`` and ``import this`` show, as far as it is installed."""
    if find_spec("pydoc_data") is not None:  # Debian packs it apart
        from pydoc_data import topics as shown

        yield from (shown.topics[name] for name in sorted(shown.topics))
    licence = _read(library / "LICENSE.txt")
    if licence:
        yield licence
    zen = _assigned_text(_read(library / "this.py") or "")
    if zen:
        yield codecs.decode(zen, "rot13")


def _assigned_text(code: str) -> str:
    """The first text that a module assigns; importing ``this`` would print it."""
    for node in ast.parse(code).body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            return str(node.value.value)
    return ""


def _modules(library: Path) -> list[Path]:
    found = [
        path
        for path in library.rglob("*.py")
        if LEFT_OUT.isdisjoint(path.relative_to(library).parts[:-1])
        and not path.name.startswith(BUILD_FACTS)
    ]
    return sorted(found, key=lambda path: path.relative_to(library).as_posix())


def _read(path: Path) -> str | None:
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    # The installation writes its own path into the first line of scripts.
    return content.partition("\n")[2] if content.startswith("#!") else content


def _docstrings(code: str) -> Iterator[str]:
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, documented):
            found = ast.get_docstring(node, clean=False)
            if found:
                yield inspect.cleandoc(found)
