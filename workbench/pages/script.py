"""One script out of small ones: a page gets the modules of a view as one text.

A bundler would do the same; these modules import nothing but each other, so that taking their
import and export words away and writing them one after the other is all there is to do.
"""

import re
from functools import cache
from importlib.resources import files

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|let|class) )", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*/\*\*(?:(?!\*/).)*\*/\n", re.MULTILINE | re.DOTALL)


@cache
def joined(package: str, entry: str) -> str:
    """The script ``entry`` of a package with every module that it imports, each before its use.

    Top-level names must differ between the modules; an import is one ``import { … } from "./…"``.
    Comments that describe types stay in the files: a page carries none.

    Args:
        package: Where the modules lie, such as ``workbench.pages.timeline``.
        entry: File name of the first module.
    """
    parts: list[str] = []
    _gather(package, entry, parts, set())
    return "\n".join(parts)


def _gather(package: str, name: str, parts: list[str], seen: set[str]) -> None:
    if name in seen:
        return
    seen.add(name)
    text = (files(package) / name).read_text(encoding="utf-8")
    for other in _IMPORT.findall(text):
        _gather(package, other, parts, seen)
    parts.append(_COMMENT.sub("", _EXPORT.sub("", _IMPORT.sub("", text))))
