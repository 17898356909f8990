"""What can be switched on a workload here: possible, refused with the reason, or harmful.

This is the table that a panel shows and a tuner searches. It uses the very checks that refuse a
setting when it is applied, and the machine's measured probes, and changes nothing.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, Literal

import torch

from workbench.machine import matmul_modes
from workbench.settings import Settings
from workbench.workload.probed import DTYPE_OF, probed
from workbench.workload.trying import Trial
from workbench.workload.values import candidates, companions
from workbench.workload.workload import Workload

State = Literal["possible", "refused", "harmful"]

SLOWER = 1.10
"""Own choice, as in WB302: what tiny products differ by on a busy machine is not called slower."""


@dataclass(frozen=True, kw_only=True)
class Offer:
    """Values of one setting that share a verdict on this workload and machine."""

    field: str
    """Name of the field of :class:`~workbench.settings.Settings`."""
    values: tuple[Any, ...]
    state: State
    reason: str | None
    """Why it is refused or harmful, or what must be known of it."""
    factor: float | None = None
    """Measured time against fp32, of the slower of a product and a convolution: for precisions and
    modes of fp32 products only."""


def offers(work: Workload, settings: Settings | None = None) -> tuple[Offer, ...]:
    """What every switch could do on this workload, this device and this machine.

    Types are measured in a process of their own the first time, which takes seconds, and are known
    from then on. A function that gives the data is not called: what its loader takes shows when a
    setting is applied.

    Args:
        work: The workload, which stays untouched.
        settings: Judge only the values that these settings give; ``None`` judges the usual values
            of every field.

    Returns:
        At least one offer a field, in the order of ``Settings``; values with the same verdict
        stand together.
    """
    trial = Trial(work, torch.device(settings.device) if settings and settings.device else None)
    if settings is None:
        asked = candidates(work, trial)
    else:
        asked = {name: (value,) for name, value in settings.changes().items()}
    found: list[Offer] = []
    for field in (each.name for each in fields(Settings)):
        values = asked.get(field)
        if values is not None:
            found += _joined(_judged(trial, field, value) for value in values)
            if not values:
                found.append(_nothing(trial, field))
    return tuple(found)


def _judged(trial: Trial, field: str, value: Any) -> Offer:
    changes = companions(field, value, trial) | {field: value}
    why = trial.refusal(Settings(**changes), field)
    factor = None
    if field == "precision" and value in DTYPE_OF:
        found = probed(DTYPE_OF[value], trial.device)
        factor = found.factor
        if why is None and factor is not None and factor > SLOWER:
            return Offer(
                field=field, values=(value,), state="harmful", reason=found.cost, factor=factor
            )
    if why is not None:
        return Offer(field=field, values=(value,), state="refused", reason=why, factor=factor)
    if field == "matmul_precision":
        return _mode(trial, value)
    harm, said = trial.remark(field, value)
    return Offer(
        field=field,
        values=(value,),
        state="harmful" if harm else "possible",
        reason=said,
        factor=factor,
    )


def _mode(trial: Trial, value: str) -> Offer:
    """What a mode of fp32 products was measured to do on the device."""
    found = next((each for each in matmul_modes(str(trial.device)) if each.mode == value), None)
    said = "changes nothing on this device" if found is not None and found.acts is False else None
    return Offer(
        field="matmul_precision",
        values=(value,),
        state="possible",
        reason=said,
        factor=None if found is None or said else found.ratio,
    )


def _nothing(trial: Trial, field: str) -> Offer:
    """For a field of which this workload has no value to offer."""
    return Offer(field=field, values=(), state="refused", reason=trial.why_empty(field))


def _joined(each: Iterable[Offer]) -> list[Offer]:
    """Neighbours with the same verdict as one offer."""
    found: list[Offer] = []
    for offer in each:
        last = found[-1] if found else None
        same = last is not None and (last.state, last.reason, last.factor) == (
            offer.state,
            offer.reason,
            offer.factor,
        )
        if last is not None and same:
            values = (*last.values, *offer.values)
            found[-1] = Offer(
                field=offer.field,
                values=values,
                state=offer.state,
                reason=offer.reason,
                factor=offer.factor,
            )
        else:
            found.append(offer)
    return found
