"""Evidence of findings: keys and values as people read them."""

from collections.abc import Mapping
from typing import Any

from workbench.pages.escape import visible
from workbench.units import NOT_MEASURED, bytes_text, count_text, share_text, significant, time_text

_TO_NS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_PER_SECOND = "_per_s"
_LONGEST = 300
_PLAIN = {
    "needed_loader_speedup": "times as fast as it is that the loader would have to be",
    "replayed_step_us": "step on batches at hand",
    "fastest_replayed_step_us": "fastest step on batches at hand",
    "saving_low_us": "saving by a free loader, at least",
    "saving_high_us": "saving by a free loader, at most",
    "saving_us": "saving by a free loader",
    "loader_alone_batch_us": "batch of the loader alone",
}
"""Keys whose words do not explain themselves."""
_LOW, _HIGH, _ONE = "saving_low_us", "saving_high_us", "saving_us"


def evidence_rows(evidence: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Label and text of every piece of evidence; an interval whose ends read the same is one."""
    rows = {name: value_text(name, value) for name, value in evidence.items()}
    low, high = rows.get(_LOW), rows.get(_HIGH)
    if low is not None and low == high:
        one = {_LOW: _ONE}
        rows = {one.get(name, name): text for name, text in rows.items() if name != _HIGH}
    return [(label(name), text) for name, text in rows.items()]


def label(name: str) -> str:
    """``wait_us_per_step`` becomes "wait per step": the unit goes with the number.

    Names of operators and ranges stay as they are.
    """
    if not str(name).isidentifier():
        return visible(str(name))
    if str(name).endswith(_PER_SECOND):
        return visible(str(name)).removesuffix(_PER_SECOND).replace("_", " ")
    if name in _PLAIN:
        return _PLAIN[name]
    words = visible(str(name)).split("_")
    return " ".join(word for word in words if word not in _TO_NS) or visible(str(name))


def value_text(name: str, value: Any) -> str:
    """A value with the unit that its name says."""
    if value is None:
        return NOT_MEASURED
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int | float):
        return _number(str(name), value)
    if isinstance(value, Mapping):
        inner = ((k, k if _unit(str(k)) else name, v) for k, v in value.items())
        return _cut(", ".join(f"{label(k)} {value_text(n, v)}" for k, n, v in inner))
    if isinstance(value, list | tuple | set | frozenset):
        return _cut(", ".join(value_text(name, each) for each in value)) or "none"
    return _cut(visible(str(value)))


def _number(name: str, value: float) -> str:
    if name.endswith(_PER_SECOND):
        return f"{significant(value)} per s"
    words = name.split("_")
    unit = _unit(name)
    if unit is not None:
        return time_text(value * _TO_NS[unit])
    if "bytes" in words:
        return bytes_text(value)
    if "share" in words or name == "noise_floor":
        return share_text(value)
    return count_text(value) if isinstance(value, int) else significant(value)


def _unit(name: str) -> str | None:
    """The unit of time that a name says."""
    return next((word for word in reversed(name.split("_")) if word in _TO_NS), None)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
