"""How long a search may take, as people write it."""

import math
import re
from typing import Any

from workbench.errors import SettingError

_UNITS = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
}
_FORM = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)


def seconds_of(budget: Any) -> float:
    """Seconds of ``"5 min"``, ``"90 s"``, ``"1.5 h"``, or of a number of seconds.

    Raises:
        SettingError: It is none of these, or not positive.
    """
    seconds = _parsed(budget)
    if seconds is None or not math.isfinite(seconds) or seconds <= 0:
        raise SettingError(
            f"budget={budget!r} is no length of time: write it as '5 min', '90 s' or '1.5 h', or "
            "give a positive number of seconds."
        )
    return seconds


def _parsed(budget: Any) -> float | None:
    if isinstance(budget, int | float) and not isinstance(budget, bool):
        return float(budget)
    match = _FORM.fullmatch(budget) if isinstance(budget, str) else None
    if match is None:
        return None
    unit = _UNITS.get(match[2].lower() or "s")
    return None if unit is None else float(match[1]) * unit
