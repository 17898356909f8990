"""Where a step goes of every rank and device, under the names that people call them by."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from workbench.pages.view import Breakdown
from workbench.run.summary import device_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from workbench.figures.breakdown import Doubt
    from workbench.run.rank import RankAnalysis
    from workbench.run.run import Run

Number = TypeVar("Number", int, float)

MOST_RANKS = 8
"""Of so many ranks a page shows where the time goes; its table of devices holds all."""
_GPUS = ("cuda", "hip", "xpu")


def rank_label(rank: RankAnalysis) -> str:
    """A rank as a title names it; by its file where nothing tells its number."""
    return f"Rank {rank.rank}" if rank.rank is not None else rank.source


def whose(run: Run, rank: RankAnalysis) -> str:
    """What goes before a device's name: the rank where there are several, else nothing."""
    return f"{rank_label(rank)}, " if len(run.ranks) > 1 else ""


def doubt(rank: RankAnalysis) -> Doubt | None:
    """What the failed checks of a trace leave open about its devices."""
    lost = any(v.code == "unrecorded_device_work" and v.voids for v in rank.trust.violations)
    if lost or rank.voids("idle") or rank.voids("devices"):
        return "times"
    return "causes" if rank.voids("causes") else None


def breakdowns(rank: RankAnalysis, prefix: str = "") -> tuple[Breakdown, ...]:
    """Where a step goes, for every device, or for the loop's thread without one.

    A step is the mean of those that count; where none does, the whole window is shown.
    """
    if rank.device_time:
        return tuple(
            _breakdown(
                rank,
                index,
                label=prefix + device_label(rank, index),
                parts_ns=rank.breakdown(index),
                total_ns=time.range.length,
            )
            for index, time in rank.device_time.items()
        )
    if rank.host_breakdown is None or rank.window is None:
        return ()
    return (
        _breakdown(
            rank,
            None,
            label=f"{prefix}the loop's thread",
            parts_ns=rank.host_breakdown,
            total_ns=rank.window.length,
        ),
    )


def _breakdown(
    rank: RankAnalysis,
    device: int | None,
    *,
    label: str,
    parts_ns: Mapping[str, int | None],
    total_ns: int,
) -> Breakdown:
    """The steps that count of one device; the window, as given, where none does."""
    steps = of_steps = None
    found = rank.details.steps.get(device)
    if found is not None and found.steady.any() and found.length[found.steady].sum():
        steps, of_steps = int(found.steady.sum()), len(found)
        parts_ns, total_ns = found.summed(), int(found.length[found.steady].sum())
    return Breakdown(
        label=label,
        parts_ns=shown_parts(parts_ns),
        total_ns=total_ns,
        steps=steps,
        of_steps=of_steps,
        doubt=None if device is None else doubt(rank),
        overhead=rank.overhead_ratio if steps else None,
    )


def shown_parts(parts: Mapping[str, Number | None]) -> dict[str, Number | None]:
    """The parts as people see them: wait and transfer as one where they were not told apart."""
    if parts.get("exposed_communication_wait", 0) is not None:
        return dict(parts)
    together = {"exposed_communication_transfer": "exposed_communication"}
    return {
        together.get(name, name): value
        for name, value in parts.items()
        if name != "exposed_communication_wait"
    }


def device_label(rank: RankAnalysis, index: int) -> str:
    """A device as people call it, such as ``GPU 0 (NVIDIA A100-SXM4-40GB)``."""
    if index < 0:
        return "device without a number"
    device = device_of(rank, index)
    label = device_name(rank, index)
    return f"{label} ({device.name})" if device is not None and device.name else label


def device_name(rank: RankAnalysis, index: int) -> str:
    """The same without its model."""
    device = device_of(rank, index)
    return f"GPU {index}" if device is not None and device.type in _GPUS else f"device {index}"
