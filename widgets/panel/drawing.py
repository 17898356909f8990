"""The live charts as still pictures: drawn by hand, they need neither script nor library."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.figures import palette
from workbench.pages.escape import escape
from workbench.units import share_text, time_text

WIDTH, HEIGHT = 720, 160
_LEFT, _TOP, _BOTTOM = 64, 20, 20
POINTS = 300
LETTER = 6.6
"""Width of a letter of 11 pixels, as wide as system fonts have it on average."""
PARTS = {
    "input_ns": "input",
    "forward_ns": "forward",
    "backward_ns": "backward",
    "optimizer_ns": "optimizer",
    "other_ns": "host_other",
}
"""Columns of telemetry and what they are drawn as."""


def step_picture(steps: Mapping[str, NDArray[Any]], marks: Sequence[tuple[int, int]]) -> str:
    """Step times in order, the spread of each bin behind its mean.

    Args:
        steps: Columns ``step`` and ``step_ns``.
        marks: Number and first step of every change of a switch.
    """
    there = np.isfinite(steps["step_ns"])
    numbers, times = (steps[name][there].astype(float) for name in ("step", "step_ns"))
    top = float(np.quantile(times, 0.95)) * 1.5
    top = max(top, 1.0) if times.max() > top else float(times.max()) * 1.1
    first, last = numbers[0], max(numbers[-1], numbers[0] + 1)
    x = _LEFT + (numbers - first) / (last - first) * (WIDTH - _LEFT - 8)
    y = HEIGHT - _BOTTOM - np.minimum(times / top, 1.02) * (HEIGHT - _BOTTOM - _TOP)
    bins = np.array_split(np.arange(len(times)), min(POINTS, len(times)))
    line = " ".join(f"{x[b].mean():.1f},{y[b].mean():.1f}" for b in bins)
    spread = "".join(
        f"M{x[b].mean():.1f} {y[b].min():.1f}V{y[b].max() + 0.5:.1f}" for b in bins if len(b) > 1
    )
    flags = "".join(
        _flag(number, _LEFT + (step - first) / (last - first) * (WIDTH - _LEFT - 8))
        for number, step in marks
        if first <= step <= last
    )
    median = time_text(float(np.median(times)))
    words = f"Step times of {len(times)} steps, median {median}"
    return _svg(
        words,
        HEIGHT,
        _axis(top, first, last)
        + f'<path d="{spread}" stroke="currentColor" stroke-opacity="0.3"/>'
        + f'<polyline points="{line}" fill="none" stroke="currentColor" stroke-width="1.5"/>'
        + flags,
    )


def part_totals(steps: Mapping[str, NDArray[Any]]) -> dict[str, float | None]:
    """Time per step of every part; ``None`` for one that was not measured."""
    found: dict[str, float | None] = {}
    for column in PARTS:
        values = steps.get(column)
        there = None if values is None else values[np.isfinite(values)]
        found[column] = None if there is None or not len(there) else float(there.mean())
    return found


def parts_picture(totals: Mapping[str, float | None]) -> str:
    """One bar, divided as a step is."""
    measured = {name: ns for name, ns in totals.items() if ns}
    whole = sum(measured.values())
    if not whole:
        return ""
    pieces, at = [], 0.0
    for name, ns in measured.items():
        look, width = palette.category(PARTS[name]), ns / whole * WIDTH
        pieces.append(
            f'<rect x="{at:.1f}" y="2" width="{width:.1f}" height="20" fill="{look.colour}"/>'
        )
        share = share_text(ns / whole)
        text = next((t for t in (f"{look.label} {share}", share) if _fits(t, width)), None)
        if text is not None:
            pieces.append(
                f'<text x="{at + 6:.1f}" y="16" fill="{palette.ink_on(look.colour)}">'
                f"{escape(text)}</text>"
            )
        at += width
    words = ", ".join(
        f"{palette.category(PARTS[name]).label} {share_text(ns / whole)}"
        for name, ns in measured.items()
    )
    return _svg(f"Where a step goes: {words}", 24, "".join(pieces))


def _fits(text: str, width: float) -> bool:
    """Whether a text has room inside a piece of the bar; a cut one would say another number."""
    return LETTER * len(text) + 12 <= width


def _axis(top: float, first: float, last: float) -> str:
    rows = []
    for share in (0.0, 0.5, 1.0):
        at = HEIGHT - _BOTTOM - share * (HEIGHT - _BOTTOM - _TOP)
        rows.append(
            f'<path d="M{_LEFT} {at:.1f}H{WIDTH - 8}" stroke="currentColor" stroke-opacity="0.2"/>'
            f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end" fill="currentColor">'
            f"{time_text(share * top)}</text>"
        )
    text = f'y="{HEIGHT - 4}" fill="currentColor"'
    ends = f'<text x="{_LEFT}" {text}>step {first:.0f}</text>' + (
        f'<text x="{WIDTH - 8}" {text} text-anchor="end">step {last:.0f}</text>'
    )
    return "".join(rows) + ends


def _flag(number: int, x: float) -> str:
    return (
        f'<path d="M{x:.1f} {_TOP}V{HEIGHT - _BOTTOM}" stroke="currentColor" '
        'stroke-dasharray="2 3"/>'
        f'<text x="{x:.1f}" y="14" text-anchor="middle" fill="currentColor">{number}</text>'
    )


def _svg(words: str, height: int, inner: str) -> str:
    style = f'width="100%" style="max-width:{WIDTH}px" font-size="11" font-family="system-ui"'
    return (
        f'<svg role="img" aria-label="{escape(words)}" viewBox="0 0 {WIDTH} {height}" {style}>'
        f"<title>{escape(words)}</title>{inner}</svg>"
    )
