"""One script out of small ones: a page or a widget gets the modules of a view as one text.

A bundler would do the same; these modules import nothing but each other, so that taking their
import and export words away and writing them one after the other is all there is to do.
"""

import re
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent.resolve()
_IMPORT = re.compile(r'^import \{[^}]*\} from "(\.[^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|let|class) )", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*/\*\*(?:(?!\*/).)*\*/\n", re.MULTILINE | re.DOTALL)


@cache
def joined(entry: Path) -> str:
    """The script of ``entry`` with every module that it imports, each once and before its use.

    Top-level names must differ between the modules; an import is one ``import { … } from "./…";``.
    Comments that describe types stay in the files: a page carries none.
    """
    parts: list[str] = []
    _gather(entry.resolve(), parts, set())
    return "\n".join(parts)


def _gather(file: Path, parts: list[str], seen: set[Path]) -> None:
    if file in seen:
        return
    seen.add(file)
    text = file.read_text(encoding="utf-8")
    for other in _IMPORT.findall(text):
        _gather(_place(file, other), parts, seen)
    parts.append(_COMMENT.sub("", _EXPORT.sub("", _IMPORT.sub("", text))))


def _place(file: Path, other: str) -> Path:
    """Where an import leads; ``…/pages/`` is this folder, wherever a checkout has the widgets."""
    _, shared, name = other.rpartition("/pages/")
    return (HERE / name if shared else file.parent / other).resolve()
