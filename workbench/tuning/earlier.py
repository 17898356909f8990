"""What an earlier measurement of the same setting found, and whether both agree."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.figures.comparison import MARKS, interval_text
from workbench.tuning.keeping import ENDING

if TYPE_CHECKING:
    from workbench.tuning.verification import Verification

_OPPOSITE = {"faster", "slower"}


def earlier_text(found: "Verification") -> str | None:
    """One sentence about the newest earlier verification beside it; ``None`` where there is none.

    Findings that one setting answers are the same question: asked twice on a noisy machine it may
    be answered in two ways, and then neither answer is worth much.
    """
    if found.folder is None:
        return None
    before = next((each for each in _others(found.folder) if _same(each[1], found)), None)
    if before is None:
        return None
    name, document = before
    change = document["change"]
    code = (document.get("finding") or {}).get("code")
    said = f"The same setting was measured before{f' for {code}' if code else ''} ({name}): "
    if change.get("low") is None or change.get("high") is None:
        return f"{said}{MARKS['cannot_tell']} cannot tell."
    took = interval_text(change["ratio"], change["low"], change["high"])
    said += f"{MARKS[change['verdict']]} {took} time."
    if {change["verdict"], found.change.verdict} == _OPPOSITE:
        said += (
            " The two contradict each other, so the machine or the loop changed meanwhile: trust "
            "neither, and verify once more with more blocks=."
        )
    return said


def _others(place: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Those of the same name that were kept before, the newest first."""
    stem = _stem(place)
    paths = [each for each in place.parent.glob(f"*{ENDING}") if _stem(each) == stem]
    try:
        written = {each: each.stat().st_mtime_ns for each in paths}
    except OSError:
        return
    own = written.get(place)
    older = [each for each in paths if own is not None and each != place and written[each] <= own]
    for path in sorted(older, key=written.__getitem__, reverse=True):
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        if isinstance(document, dict) and isinstance(document.get("change"), dict):
            yield path.name, document


def _stem(path: Path) -> str:
    """A name without the number that tells it from others of its kind."""
    name = path.name.removesuffix(ENDING)
    head, dash, number = name.rpartition("-")
    return head if dash and number.isdigit() else name


def _same(document: Mapping[str, Any], found: "Verification") -> bool:
    """Whether the same was switched, against the same loop."""
    trials = document.get("trials") or [{}]
    now = found.trials[0].effective
    plain = json.loads(json.dumps(dict(now), default=str))
    return bool(
        document.get("settings") == json.loads(json.dumps(found.settings.to_json(), default=str))
        and document.get("base") == json.loads(json.dumps(found.base.to_json(), default=str))
        and trials[0].get("effective") == plain
    )
