"""From compute alone to the measured step: what each other part adds."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from workbench.figures import names, palette, template
from workbench.figures.breakdown import (
    THICK,
    THIN,
    WORK,
    Doubt,
    Part,
    cannot_tell,
    is_host,
    ordered,
    profiled_text,
    time_axis,
    whole_text,
)
from workbench.figures.empty import not_measured
from workbench.figures.ranking import height, row_axis, row_labels
from workbench.figures.scale import exact, time_scale
from workbench.units import share_text, time_text

if TYPE_CHECKING:
    import plotly.graph_objects as go


def waterfall(
    parts_ns: Mapping[str, int | None] | None,
    *,
    total_ns: int,
    device_label: str,
    steps: int | None = None,
    of_steps: int | None = None,
    doubt: Doubt | None = None,
    overhead: float | None = None,
    reason: str = "the trace holds no device work; on the CPU see where a step goes.",
) -> "go.Figure":
    """Draw compute alone, then what every other part adds, then the measured step.

    Args:
        parts_ns: Nanoseconds by category of a device; ``None`` = not measured.
        total_ns: Length of the steps together, or of the window; the parts sum to it.
        device_label: "GPU 0 (A100)".
        steps: How many steps these are; given, times are shown per step.
        of_steps: Complete steps of the recording, where some are left out.
        doubt: What the trace cannot be trusted for: the title then claims nothing about it.
        overhead: Median step under the profiler over one without it, where both are known.
        reason: Said when there is nothing to draw.
    """
    measured = {name: ns for name, ns in (parts_ns or {}).items() if ns is not None}
    if total_ns <= 0 or not any(measured.values()) or is_host(measured):
        return not_measured("From compute alone to the measured step", reason)
    compute = measured.pop("compute", 0)
    added = ordered(measured, total_ns)
    per = steps or 1
    scale = time_scale(total_ns / per)
    whole = "step" if steps else "window"
    bars = [
        (0, compute, Part("compute", compute, "compute alone")),
        *_climbing(compute, added),
        (0, total_ns, Part("", total_ns, f"the measured {whole}")),
    ]
    drawn = template.figure(
        names.plain(
            headline(compute, added, total_ns, device_label=device_label, whole=whole, doubt=doubt)
        ),
        names.plain(f"{whole_text(total_ns, steps, of_steps)}, {profiled_text(overhead)}"),
        height=height(len(bars)),
        xaxis=time_axis(total_ns / per, steps, scale),
        yaxis=row_axis(len(bars)),
        annotations=row_labels([_words(row, bars, per) for row in range(len(bars))]),
    )
    drawn.add_bar(**_bars(bars, total_ns, per, scale.size))
    return drawn


def headline(
    compute: int,
    added: list[Part],
    total_ns: int,
    *,
    device_label: str,
    whole: str,
    doubt: Doubt | None = None,
) -> str:
    """What compute alone would take, and what adds most."""
    if doubt == "times":
        return cannot_tell(device_label)
    share = share_text(compute / total_ns)
    said = f"Compute alone would take {share} of the {whole} of {device_label}"
    if not added or (doubt == "causes" and max(added, key=lambda p: p.ns).name not in WORK):
        return said
    most = max(added, key=lambda part: part.ns)
    return f"{said}; {most.label} adds most, {share_text(most.ns / total_ns)}"


def _words(row: int, bars: Sequence[tuple[int, int, Part]], per: int) -> tuple[str, str]:
    sign = "+ " if 0 < row < len(bars) - 1 else ""
    _, ns, part = bars[row]
    return names.plain(part.label), f"<b>{sign}{time_text(ns / per)}</b>"


def _climbing(start: int, added: list[Part]) -> list[tuple[int, int, Part]]:
    made = []
    for part in added:
        made.append((start, part.ns, part))
        start += part.ns
    return made


def _bars(
    bars: list[tuple[int, int, Part]], total_ns: int, per: int, size: float
) -> dict[str, Any]:
    looks = [palette.category(part.name) if part.name else _WHOLE for _, _, part in bars]
    said = [
        f"<b>{names.plain(part.label)}</b><br>{exact(ns / per)}"
        f"<br>{share_text(ns / total_ns)} of the whole"
        for _, ns, part in bars
    ]
    return {
        "orientation": "h",
        "base": [start / per / size for start, _, _ in bars],
        "x": [ns / per / size for _, ns, _ in bars],
        "y": list(range(len(bars))),
        "width": [THIN if look.idle else THICK for look in looks],
        "marker": template.each_filled(looks),
        "customdata": said,
        "hovertemplate": "%{customdata}<extra></extra>",
    }


_WHOLE = palette.Category(label="the whole", colour="#5A5A5A")
