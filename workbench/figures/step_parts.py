"""Every step by what it waits for: bars of idle time by cause, step after step."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from workbench.figures import names, palette, template
from workbench.figures.breakdown import HOST, Doubt, is_host
from workbench.figures.empty import not_measured, nothing
from workbench.figures.scale import exact, time_scale
from workbench.figures.stacked import bars, stacked, steps_a_bar
from workbench.units import count_text, share_text, time_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

Times = NDArray[np.int64]

MOST_LAYERS = 6
"""Parts with a colour of their own; smaller ones are drawn together."""


def step_parts(
    parts_ns: Mapping[str, Times | None] | None,
    *,
    length_ns: Times | None,
    numbers: Sequence[int] = (),
    slow: Sequence[int] = (),
    device_label: str,
    doubt: Doubt | None = None,
    reason: str = "the trace marks no complete step; call profiler.step(), or use wb.profile.",
) -> "go.Figure":
    """Draw a bar a step: on a device its idle time by cause, on the CPU all parts of the loop.

    Args:
        parts_ns: Nanoseconds of every step by part; ``None`` = not measured.
        length_ns: Length of every step.
        numbers: Numbers of the steps.
        slow: Numbers of outlier steps, marked.
        device_label: "GPU 0 (A100)", or what else the parts are of.
        doubt: What the trace cannot be trusted for: the title then claims nothing about it.
        reason: Said when there is nothing to draw.
    """
    if parts_ns is None or length_ns is None or not len(length_ns):
        return not_measured("What each step waits for", reason)
    host = is_host({name: 0 for name, values in parts_ns.items() if values is not None})
    layers = _layers(parts_ns, host=host)
    if not layers:
        return nothing(f"{device_label} is never idle in any step", "some work always runs.")
    size = steps_a_bar(len(length_ns))
    scale = time_scale(float(np.median(sum(values for _, values in layers))))
    drawn = stacked(
        names.plain(headline(layers, length_ns, numbers, device_label, host=host, doubt=doubt)),
        names.plain(_subtitle(length_ns, size, slow, host=host)),
        axis=f"{'time' if host else 'idle time'} ({scale.unit})",
        steps=len(length_ns),
    )
    for label, values in layers:
        drawn.add_bar(**_layer(label, values, length_ns, numbers, unit=scale.size))
    _mark(drawn, layers, numbers, slow, size=size, unit=scale.size)
    return drawn


def headline(
    layers: Sequence[tuple[str, Times]],
    length_ns: Times,
    numbers: Sequence[int],
    device_label: str,
    *,
    host: bool,
    doubt: Doubt | None = None,
) -> str:
    """How long steps wait, and the one that waits longest."""
    if doubt == "times":
        return f"Cannot tell how long {device_label} is idle: this profile fails its own checks"
    if host:
        most = max(layers, key=lambda each: int(each[1].sum()))
        share = share_text(int(most[1].sum()) / int(length_ns.sum()))
        return f"Over the steps, {palette.category(most[0]).label} takes {share} of the loop"
    whole = np.asarray(sum(values for _, values in layers))
    said = f"{device_label} is idle {time_text(float(np.median(whole)))} of a step"
    if len(whole) > 1:
        at = int(whole.argmax())
        said += f"; longest in step {numbers[at]}, {time_text(float(whole[at]))}"
    return said


def _layers(parts_ns: Mapping[str, Times | None], *, host: bool) -> list[tuple[str, Times]]:
    """The parts to stack, largest first; small ones as one."""
    chosen = {
        name: values
        for name, values in parts_ns.items()
        if values is not None
        and values.any()
        and (name in HOST if host else palette.category(name).idle)
    }
    ranked = sorted(chosen, key=lambda name: -int(chosen[name].sum()))
    kept, rest = ranked[:MOST_LAYERS], ranked[MOST_LAYERS:]
    made = [(name, chosen[name]) for name in kept]
    if len(rest) == 1:
        made.append((rest[0], chosen[rest[0]]))
    elif rest:
        together = np.sum([chosen[name] for name in rest], axis=0)
        made.append((f"{len(rest)} smaller parts", np.asarray(together, np.int64)))
    return made


def _layer(
    name: str,
    values: Times,
    length_ns: Times,
    numbers: Sequence[int],
    *,
    unit: float,
) -> dict[str, Any]:
    look = palette.category(name)
    made = list(bars(values, length_ns, numbers))
    return {
        "name": names.plain(look.label),
        "x": [bar.at for bar in made],
        "y": [bar.ns / unit for bar in made],
        "marker": template.filled(look),
        "customdata": [
            f"<b>{bar.which} · {names.plain(look.label)}</b><br>{exact(bar.ns)}<br>"
            f"of {exact(bar.of_ns)} ({share_text(bar.ns / bar.of_ns if bar.of_ns else None)})"
            for bar in made
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _subtitle(length_ns: Times, size: int, slow: Sequence[int], *, host: bool) -> str:
    count = len(length_ns)
    text = f"{count_text(count)} step{'s' * (count != 1)}, under the profiler"
    if not host:
        text += "; a step ends when its work on the device is complete"
    if slow:
        text += f" · ▼ marks {count_text(len(slow))} far slower step{'s' * (len(slow) != 1)}"
    if size > 1:
        text += f" · a bar is the mean of {size} steps"
    return text


def _mark(
    drawn: "go.Figure",
    layers: Sequence[tuple[str, Times]],
    numbers: Sequence[int],
    slow: Sequence[int],
    *,
    size: int,
    unit: float,
) -> None:
    if size > 1:
        return
    whole = np.asarray(sum(values for _, values in layers))
    for number in slow:
        at = list(numbers).index(number)
        drawn.add_annotation(
            template.direct_label("▼", x=number, y=float(whole[at]) / unit, yanchor="bottom")
        )
