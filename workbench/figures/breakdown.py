"""Where a step goes: every part of it, adding up to the whole."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from workbench.figures import names, palette, template
from workbench.figures.empty import not_measured
from workbench.figures.ranking import ROW, row_labels
from workbench.figures.scale import Scale, exact, time_scale
from workbench.units import NOT_MEASURED, count_text, share_text, significant, time_text

if TYPE_CHECKING:
    import plotly.graph_objects as go

SMALL = 0.005
"""Parts below this share are drawn together; the table beside the figure lists each."""

ALIKE = 0.05
"""Own choice: a profiler that changes a step by less needs no word."""

THICK, THIN = 0.32, 0.12
"""Of a row, how much a bar of work takes, and one of idle time."""

WORK = (
    "compute",
    "exposed_communication_wait",
    "exposed_communication_transfer",
    "exposed_communication",
    "communication",
    "exposed_memory",
    "memory",
)
HOST = (
    "input",
    "forward",
    "backward",
    "optimizer",
    "communication",
    "other_operators",
    "host_python",
    "host_other",
)
Doubt = Literal["times", "causes"]
"""What a failed check of the trace leaves open: how long a device worked, or why it idled."""

_HOST_ONLY = frozenset({"forward", "backward", "optimizer", "other_operators"})


class Part(NamedTuple):
    """One bar: its category, or several small ones together."""

    name: str
    ns: int
    label: str


def breakdown(
    parts_ns: Mapping[str, int | None] | None,
    *,
    total_ns: int,
    device_label: str,
    steps: int | None = None,
    of_steps: int | None = None,
    doubt: Doubt | None = None,
    overhead: float | None = None,
    reason: str = "the trace holds no window to break down; record at least two whole steps.",
) -> "go.Figure":
    """Draw where the window goes: one stacked bar, and under it each part with its name.

    Args:
        parts_ns: Nanoseconds by category (``metrics.md``, Breakdown); ``None`` = not measured.
        total_ns: Length of the steps together, or of the window; the parts sum to it.
        device_label: "GPU 0 (A100)", or "CPU" when the parts are those of the loop's thread.
        steps: How many steps these are; given, times are shown per step.
        of_steps: Complete steps of the recording, where some are left out.
        doubt: What the trace cannot be trusted for: the title then claims nothing about it.
        overhead: Median step under the profiler over one without it, where both are known.
        reason: Said when there is nothing to draw.

    Raises:
        ValueError: If the parts exceed the window.
    """
    measured = {name: ns for name, ns in (parts_ns or {}).items() if ns is not None}
    if total_ns <= 0 or not any(measured.values()):
        return not_measured(f"Where a step of {device_label} goes", reason)
    if sum(measured.values()) > total_ns:
        raise ValueError(
            f"the parts sum to {sum(measured.values())} ns, more than the window of {total_ns} ns"
        )
    parts = ordered(measured, total_ns)
    thin = not is_host(measured)
    missing = [palette.category(name).label for name, ns in (parts_ns or {}).items() if ns is None]
    per = steps or 1
    scale = time_scale(total_ns / per)
    drawn = template.figure(
        names.plain(
            headline(measured, total_ns, device_label, "step" if steps else "window", doubt)
        ),
        names.plain(_subtitle(whole_text(total_ns, steps, of_steps), overhead, missing)),
        height=128 + ROW * (len(parts) + 1),
        xaxis=time_axis(total_ns / per, steps, scale),
        yaxis={"range": [len(parts) + 0.5, -0.3], **template.NAMELESS},
        annotations=row_labels([_words(part, total_ns, per) for part in parts], first=1),
    )
    drawn.add_bar(**_bars(parts, total_ns, per, scale, thin_idle=thin))
    return drawn


def ordered(measured: Mapping[str, int], total_ns: int) -> list[Part]:
    """Work first, in a fixed order; then idle, longest first; small parts together at the end."""
    order = HOST if is_host(measured) else WORK
    present = {name: ns for name, ns in measured.items() if ns > 0}
    first = [name for name in order if name in present]
    rest = sorted(set(present) - set(first), key=lambda name: (-present[name], name))
    small = [name for name in rest if present[name] < SMALL * total_ns]
    if len(small) > 1:
        rest = [name for name in rest if name not in small]
    else:
        small = []
    parts = [Part(name, present[name], palette.category(name).label) for name in first + rest]
    if small:
        together = sum(present[name] for name in small)
        parts.append(Part("unknown", together, f"{len(small)} smaller causes"))
    return parts


def is_host(measured: Mapping[str, int | None]) -> bool:
    """Whether these are the parts of the loop's thread (CPU-only), not of a device."""
    return not _HOST_ONLY.isdisjoint(measured)


def headline(
    measured: Mapping[str, int],
    total_ns: int,
    device_label: str,
    whole: str,
    doubt: Doubt | None = None,
) -> str:
    """The finding in one sentence, for the title."""
    if is_host(measured):
        return _host_headline(measured, total_ns, whole)
    if doubt == "times":
        return cannot_tell(device_label)
    idle = {n: ns for n, ns in measured.items() if palette.category(n).idle or n not in WORK}
    waiting = sum(idle.values()) / total_ns
    if idle and waiting >= 0.1:
        if doubt == "causes":
            said = f"{device_label} waits {share_text(waiting)} of the {whole}"
            return f"{said}; for what, this trace cannot tell"
        cause = max(idle, key=lambda name: idle[name])
        share = idle[cause] / sum(idle.values())
        often = "mostly" if share >= 0.5 else "most of all"
        reason = palette.category(cause).waits or f"for {palette.category(cause).label}"
        return f"{device_label} waits {share_text(waiting)} of the {whole}, {often} {reason}"
    work = {name: ns for name, ns in measured.items() if name in WORK}
    others = {name: ns for name, ns in work.items() if name != "compute"}
    text = f"{device_label} computes {share_text(work.get('compute', 0) / total_ns)} of the {whole}"
    if others and max(others.values()) >= 0.05 * total_ns:
        name = max(others, key=lambda key: others[key])
        text += f"; {palette.category(name).label} takes {share_text(others[name] / total_ns)}"
    return text


def _host_headline(measured: Mapping[str, int], total_ns: int, whole: str) -> str:
    phrase = {"input": "waiting for data", "host_other": "host code outside the framework"}
    if not any(measured.get(name) for name in ("forward", "backward", "optimizer")):
        phrase["other_operators"] = "operators of the framework"  # there are none but these
    ranked = sorted(measured, key=lambda name: -measured[name])[:2]
    first, *second = [
        (share_text(measured[name] / total_ns), phrase.get(name, palette.category(name).label))
        for name in ranked
        if measured[name] > 0.05 * total_ns or name == ranked[0]
    ]
    text = f"{first[0]} of the {whole} goes to {first[1]}"
    return text + "".join(f", {share} to {what}" for share, what in second)


def whole_text(total_ns: int, steps: int | None, of_steps: int | None = None) -> str:
    """What the parts are parts of: the mean of some steps, or a window."""
    if not steps:
        return f"window of {time_text(total_ns)}"
    counted = count_text(steps)
    if of_steps is not None and of_steps > steps:
        counted += f" of {count_text(of_steps)}"
    if steps == 1:
        return f"{'one step' if counted == '1' else counted + ' steps'} of {time_text(total_ns)}"
    return f"mean of {counted} steps, {time_text(total_ns / steps)}"


def profiled_text(overhead: float | None) -> str:
    """That times are profiled ones, and what the profiler does to a step where that is known.

    Args:
        overhead: Median step under the profiler over one without it; ``None`` = not measured.
    """
    if overhead is None or abs(overhead - 1) < ALIKE:
        return "under the profiler"
    return f"under the profiler ({significant(overhead)} times the median step without it)"


def cannot_tell(device_label: str) -> str:
    """The title where not even how long a device worked is certain."""
    return f"Cannot tell how busy {device_label} is: this profile fails its own checks"


def time_axis(length_ns: float, steps: int | None, scale: Scale) -> dict[str, object]:
    """The axis of times: of a mean step, or of a window."""
    return {
        "title": {"text": f"{'mean time per step' if steps else 'time'} ({scale.unit})"},
        "range": [0, length_ns / scale.size],
        "fixedrange": True,
    }


def _subtitle(whole: str, overhead: float | None, missing: list[str]) -> str:
    text = f"{whole}, {profiled_text(overhead)}"
    if missing:
        text += f" · {NOT_MEASURED}: {', '.join(missing)}"
    return text


def _starts(parts: list[Part]) -> list[int]:
    starts, at = [], 0
    for part in parts:
        starts.append(at)
        at += part.ns
    return starts


def _bars(
    parts: list[Part], total_ns: int, per: int, scale: Scale, *, thin_idle: bool
) -> dict[str, object]:
    """The stacked bar in row 0 and, a row each, the same parts at the same place."""
    base = [start / per / scale.size for start in _starts(parts)]
    length = [part.ns / per / scale.size for part in parts]
    looks = [palette.category(part.name) for part in parts]
    thick = [THIN if look.idle and thin_idle else THICK for look in looks]
    said = [_hover(part, total_ns, per) for part in parts]
    return {
        "orientation": "h",
        "base": base * 2,
        "x": length * 2,
        "y": [0] * len(parts) + list(range(1, len(parts) + 1)),
        "width": thick * 2,
        "marker": template.each_filled(looks * 2),
        "customdata": said * 2,
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _hover(part: Part, total_ns: int, per: int) -> str:
    lines = [f"<b>{names.plain(part.label)}</b>", f"{share_text(part.ns / total_ns)} of the whole"]
    if per > 1:
        lines.append(f"{exact(part.ns / per)} per step")
    lines.append(f"{exact(part.ns)} {'together' if per > 1 else 'in all'}")
    return "<br>".join(lines)


def _words(part: Part, total_ns: int, per: int) -> tuple[str, str]:
    share = share_text(part.ns / total_ns)
    return names.plain(part.label), f"<b>{share}</b>  {time_text(part.ns / per)}"
