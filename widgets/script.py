"""One script out of small ones: a widget's code reaches the page as one text.

A bundler would do the same; the modules here import nothing but each other, so that taking their
import and export words away and writing them one after the other is all there is to do.
"""

import re
from functools import cache
from pathlib import Path

_IMPORT = re.compile(r'^import \{[^}]*\} from "(\.[^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|class) )", re.MULTILINE)


@cache
def joined(entry: Path) -> str:
    """The script of ``entry`` with every module that it imports, each once and before its use.

    Top-level names must differ between the modules; an import is one ``import { … } from "./…";``.
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
        _gather((file.parent / other).resolve(), parts, seen)
    parts.append(_EXPORT.sub("", _IMPORT.sub("", text)))
