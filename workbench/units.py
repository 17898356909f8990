"""Numbers for people: three significant digits, and the unit that suits the size."""

from collections.abc import Sequence
from pathlib import Path

THIN_SPACE = "\u2009"
NOT_MEASURED = "not measured"

_TIMES: Sequence[tuple[float, str]] = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_BYTES: Sequence[tuple[float, str]] = (
    (1e12, "TB"),
    (1e9, "GB"),
    (1e6, "MB"),
    (1e3, "kB"),
    (1.0, "B"),
)


def time_text(ns: float | None) -> str:
    """A duration given in nanoseconds, such as ``12.3 ms``."""
    return _scaled(ns, _TIMES)


def bytes_text(count: float | None) -> str:
    """A size given in bytes, in decimal units, such as ``1.25 GB``."""
    return _scaled(count, _BYTES)


def share_text(share: float | None) -> str:
    """A share given as a fraction: one decimal below 10 %, none above.

    Never 0 for a little, nor 100 for less than all.
    """
    if share is None:
        return NOT_MEASURED
    percent = share * 100
    if 0 < percent < 0.05:
        return "< 0.1 %"
    if 99.5 <= percent < 100:
        return f"{min(percent, 99.9):.1f} %"
    return f"{percent:.1f} %" if abs(round(percent, 1)) < 10 else f"{percent:.0f} %"


def spread_text(spread: float) -> str:
    """What equal things differ by; from double on a percentage says nothing more."""
    return "more than double" if spread > 1 else share_text(spread)


def name_text(path: Path) -> str:
    r"""The name of a file or folder; bytes of it that are no UTF-8 are shown as ``\xff``."""
    return path.name.encode(errors="surrogateescape").decode(errors="backslashreplace")


def count_text(count: float | None) -> str:
    """A whole number with thin spaces between thousands."""
    if count is None:
        return NOT_MEASURED
    return f"{count:,.0f}".replace(",", THIN_SPACE)


def number_text(value: float) -> str:
    """A number of things, such as calls a step: whole ones as they are, others to three digits."""
    return count_text(value) if value == round(value) else significant(value)


def significant(value: float) -> str:
    """Three significant digits, thousands separated by thin spaces, no exponent."""
    if value == 0:
        return "0"
    digits = 3
    text = f"{value:.{digits}g}"
    rounded = float(text)
    if abs(rounded) >= 100:
        return f"{rounded:,.0f}".replace(",", THIN_SPACE)
    decimals = 0
    magnitude = abs(rounded)
    while magnitude < 100 and decimals < 12:
        magnitude *= 10
        decimals += 1
    return (
        f"{rounded:.{decimals}f}".rstrip("0").rstrip(".")
        if decimals > 2
        else f"{rounded:.{decimals}f}"
    )


def _scaled(value: float | None, scale: Sequence[tuple[float, str]]) -> str:
    if value is None:
        return NOT_MEASURED
    for size, unit in scale:
        if abs(value) >= size * 0.9995 or unit == scale[-1][1]:
            return f"{significant(value / size)} {unit}"
    raise AssertionError("the last unit takes every value")
