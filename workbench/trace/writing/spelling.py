"""How text, numbers and times of the table are spelled in JSON."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.trace.table import Lane

_INT64_DIGITS = 18


class Spelled(dict[int, str]):
    """The JSON text of every code of a table of strings, made when first asked for."""

    def __init__(self, texts: Sequence[Any], spell: Callable[[Any], str] = json.dumps) -> None:
        super().__init__()
        self._texts = texts
        self._spell = spell

    def __missing__(self, code: int) -> str:
        text = self[code] = self._spell(self._texts[code])
        return text


def json_value(text: str) -> str:
    """Text that is JSON already, such as shapes; as a string where it is not."""
    try:
        json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return json.dumps(text)
    return text


def place(lane: Lane) -> str:
    """The process and thread of a lane."""
    return f'"pid":{number_or_text(lane.pid)},"tid":{number_or_text(lane.tid)}'


def number_or_text(text: str) -> str:
    """A number where the text is one, as viewers expect of process and thread ids."""
    digits = text.removeprefix("-")
    plain = digits.isascii() and digits.isdecimal() and len(digits) <= _INT64_DIGITS
    if plain and str(int(text)) == text:
        return text
    return json.dumps(text)


def microseconds(ns: NDArray[np.int64]) -> list[str]:
    """Times in microseconds with three decimals, exactly."""
    us, rest = np.divmod(np.abs(ns), 1000)
    texts = [f"{a}.{b:03d}" for a, b in zip(us.tolist(), rest.tolist(), strict=True)]
    for index in np.flatnonzero(ns < 0).tolist():
        texts[index] = f"-{texts[index]}"
    return texts


def number(value: float) -> str:
    """A float that reads back the same; what JSON has no number for is no number here either."""
    if np.isnan(value):
        return "null"
    return repr(value) if np.isfinite(value) else json.dumps(str(value))


def _refuse(name: str) -> Any:
    raise ValueError(name)
