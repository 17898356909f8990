"""Keep a setting, revert it, or say that nobody can tell; with the reason in one sentence."""

from dataclasses import dataclass
from typing import Literal

from workbench.figures.comparison import interval_text
from workbench.settings import Settings
from workbench.statistics.change import Change
from workbench.tuning.parity import Parity
from workbench.tuning.trial import Per, Trial
from workbench.units import bytes_text, share_text, spread_text

Advice = Literal["keep", "revert", "cannot tell"]

MEMORY = 0.1
"""A change of the peak memory by less than this share is not worth a word."""


@dataclass(frozen=True, kw_only=True)
class Bound:
    """The most that acting on a finding could gain, and whether the gain keeps to it."""

    ratio: float
    """Least step time with the setting over step time without it."""
    held: bool | None
    """Whether the measured interval reaches down to the bound at most; ``None``: not measured, or
    the switch acts on more than the finding names."""
    more: str | None = None
    """What else the switch acts on, which the bound leaves out."""

    @property
    def saving(self) -> float:
        """The bound as a share of the step."""
        return 1 - self.ratio


def bound_of(
    step_ns: float | None,
    saving_ns: float | None,
    speedup: float | None,
    change: Change,
    *,
    more: str | None = None,
) -> Bound | None:
    """The bound of a finding against what was measured.

    A finding tells means of all steps, also of those that something else held up, and the gain is
    one of usual steps, as fast as the machine makes them now. So its bound is the larger of the
    time that it names and of the share of a step that it names; of steps of microseconds the two
    differ.

    Args:
        step_ns: Step time without the setting, as measured now.
        saving_ns: What the finding says a step saves at most.
        speedup: How many times as fast it says the loop gets at most.
        change: The measured change.
        more: What else the switch acts on; then a larger gain breaks no promise.
    """
    ratios = []
    if speedup is not None and speedup > 0:
        ratios.append(1 / speedup)
    if saving_ns is not None and step_ns:
        ratios.append(max(0.0, 1 - saving_ns / step_ns))
    if not ratios:
        return None
    noise, least = change.noise_floor or 0.0, min(ratios)
    held = None if change.high is None else change.high >= least / (1 + noise)
    if more is not None and held is False:
        held = None
    return Bound(ratio=least, held=held, more=more)


def acts_on_more(code: str, change: Settings) -> str | None:
    """What a switch does beside what the finding bounds; ``None`` where that is all."""
    field, what = _MORE.get(code, ("", ""))
    return what if field in change.changes() else None


_MORE = {
    "WB201": ("compile", "fuses kernels, which shortens the device's own work"),
    "WB202": ("compile", "fuses kernels, which shortens the device's own work"),
    "WB305": ("precision", "ends the scaling of gradients in every step"),
}
"""By code: the switch of a finding that bounds only a part of what the switch does."""


def advise(after: Trial, change: Change, parity: Parity | None) -> Advice:
    """What to do with the setting, by time and numbers; memory is told beside it."""
    if not after.ok:
        return "cannot tell" if after.outcome in {"not_measured", "timed_out"} else "revert"
    if change.verdict == "slower":
        return "revert"
    if parity is not None and parity.verdict in {"differs", "diverges"}:
        return "revert"
    if change.verdict == "faster" and parity is not None and parity.ok:
        return "keep"
    return "cannot tell"


def sentence(
    settings: Settings,
    after: Trial,
    change: Change,
    parity: Parity | None,
    *,
    per: Per,
    bound: Bound | None,
    elsewhere: str | None = None,
    memory: str | None = None,
) -> str:
    """What was found, in one honest sentence; ``elsewhere``: code of a finding of another loop."""
    name = str(settings)
    if not after.ok:
        return _not_measured(name, after)
    parts = [_time(name, change, per)]
    if bound is not None and change.verdict == "faster":
        parts.append(_against(bound))
    if elsewhere is not None:
        parts.append(f"the bound of {elsewhere} belongs to another loop")
    if memory is not None:
        parts.append(memory)
    if parity is not None:
        parts.append(_numbers(parity))
    advice = advise(after, change, parity)
    if advice == "cannot tell" and change.verdict == "cannot_tell":
        return f"{'; '.join(parts)}."  # it begins with saying so
    return f"{'; '.join(parts)}: {_TODO[advice]}."


def memory_text(before: Trial, after: Trial) -> str | None:
    """The change of peak memory in words, where it is worth some."""
    kinds = (("device memory", "device_peak_bytes"), ("memory", "peak_rss_bytes"))
    for what, name in kinds:
        a, b = getattr(before, name), getattr(after, name)
        if a is None or b is None:
            continue
        if name == "peak_rss_bytes":
            a, b = a + (before.workers_bytes or 0), b + (after.workers_bytes or 0)
        if abs(b - a) > MEMORY * max(a, 1):
            return f"{what} {bytes_text(b)} instead of {bytes_text(a)}"
        return None
    return None


_TODO = {
    "keep": "keep it",
    "revert": "revert it",
    "cannot tell": "compare the losses of a longer training before you keep it",
}


def _not_measured(name: str, after: Trial) -> str:
    words = {
        "out_of_memory": f"{name}: out of memory, everything was put back: revert it.",
        "refused": f"{name} cannot act here: {after.reason}",
        "error": f"{name} fails: {after.reason}",
        "timed_out": f"{name} hung or was too slow for its share of the time: {after.reason}",
    }
    return words.get(after.outcome, f"{name} was not measured: the measurement ended before it.")


def _time(name: str, change: Change, per: Per) -> str:
    open_ = f"≈ cannot tell whether {name} helps"
    if change.low is None or change.high is None or change.ratio is None:
        return f"{open_}: {change.reason or 'nothing was measured'}".rstrip(".")
    took = interval_text(change.ratio, change.low, change.high)
    if change.too_noisy:
        return f"{open_}: only a change to more than double could be told from chance here"
    if change.uneven:
        return f"{open_}: {change.reason or ''}".rstrip(".")
    if change.verdict == "cannot_tell":
        least = spread_text(change.smallest_effect or 0.0)
        return f"{open_}: {took} time a {per}, where a change below {least} is chance"
    mark = "▲" if change.verdict == "faster" else "▼"
    return f"{mark} {name} is {change.verdict}: {took} time a {per}"


def _against(bound: Bound) -> str:
    most = share_text(bound.saving)
    if bound.more is not None and bound.held is None:
        return f"more than the {most} of the finding, since it also {bound.more}"
    if bound.held is False:
        return f"more than the {most} that was thought possible"
    return f"at most {most} was possible"


def _numbers(parity: Parity) -> str:
    words = {
        "as_expected": "its numbers are as expected",
        "differs": "but its numbers differ",
        "diverges": "but its training diverges",
        "cannot_tell": "its numbers could not be compared",
    }
    return words[parity.verdict]
