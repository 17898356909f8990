"""Write the lessons' notebooks, exercises and solutions, from one source each.

Run it as ``python docs/make_lessons.py``. A source is ``docs/lessons/NAME.md``: text becomes a
markdown cell up to the next code fence, each fence marked ``python`` a code cell. A line of code
that ends in ``# exercise: TEXT`` is what the solution has; the exercise has TEXT in its place.
"""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "docs/lessons"
LESSONS = ROOT / "notebooks/lessons"
_FENCE = re.compile(r"^```python\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)
_SLOT = re.compile(r"^(?P<indent> *)(?P<solution>.*?)  # exercise: (?P<exercise>.*)$", re.MULTILINE)
_KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def notebook(source: str, *, solved: bool) -> dict[str, Any]:
    """The notebook of a source, without outputs."""
    cells: list[dict[str, Any]] = []
    for number, part in enumerate(_FENCE.split(source)):
        text = part.strip("\n")
        if not text:
            continue
        made: dict[str, Any] = {"id": f"cell-{len(cells)}", "metadata": {}}
        if number % 2:
            code = _SLOT.sub(lambda slot: _filled(slot, solved=solved), text)
            made |= {"cell_type": "code", "execution_count": None, "outputs": [], "source": code}
        else:
            made |= {"cell_type": "markdown", "source": text}
        made["source"] = made["source"].splitlines(keepends=True)
        cells.append(made)
    metadata = {"kernelspec": _KERNEL, "language_info": {"name": "python"}}
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _filled(slot: re.Match[str], *, solved: bool) -> str:
    return slot["indent"] + (slot["solution"] if solved else slot["exercise"])


def written() -> dict[Path, str]:
    """Every notebook's path with its text."""
    found = {}
    for source in sorted(SOURCES.glob("*.md")):
        text = source.read_text(encoding="utf-8")
        for folder, solved in ((LESSONS, False), (LESSONS / "solutions", True)):
            made = json.dumps(notebook(text, solved=solved), indent=1, ensure_ascii=False)
            found[folder / f"{source.stem}.ipynb"] = made + "\n"
    return found


def main() -> None:
    """Write what changed."""
    for path, text in written().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
