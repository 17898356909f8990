"""Whether two settings compute the same numbers, as far as their dtypes let them."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

Verdict = Literal["as_expected", "differs", "diverges", "cannot_tell"]

ROUNDING = {
    "fp32": 2.0**-23,
    "tf32": 2.0**-10,
    "fp16": 2.0**-10,
    "bf16": 2.0**-7,
    "bf16_pure": 2.0**-7,
    "fp8": 2.0**-3,
}
"""Distance from 1 to the next number of each precision."""
LOSS_UNITS = {"fp32": 256.0}
"""Roundings by which a first loss may differ; of low precision one, because sums are kept in fp32
there and only what goes into them is rounded. Sums of n numbers in another order differ by about
√n roundings: 256 is a sum of 65 536 (own choice)."""
VECTOR_UNITS = {"fp32": 2048.0}
"""The same for outputs and gradients, which are not averaged over a batch; 4 of low precision."""
GROWTH = 4.0
"""By which what is allowed grows from one step to the next, where nothing better is known."""
NOISE_FACTOR = 3.0
"""A difference must exceed what the loop differs from itself, and what it makes of one rounding
of its weights, by this factor."""
DIVERGED = 0.5
"""A loss that is off by half of itself has left its way, whatever the dtype (own choice)."""


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """What some steps on given batches computed; ``None`` where it could not be seen."""

    losses: tuple[float | None, ...]
    gradient_norms: tuple[float | None, ...]
    """Norm of all gradients when an optimizer stepped; without one, after the step."""
    output: Any = None
    """The model's first output, as a flat array."""
    skipped_steps: int = 0
    """Steps in which no optimizer stepped, because gradients overflowed."""
    precision: str = "fp32"


@dataclass(frozen=True, kw_only=True)
class Parity:
    """Whether another setting computes the same, with how far it is off.

    Differences are relative, of the first step, where both start from the same weights; ``None``
    where nothing could be seen. ``later_difference`` is the largest of the losses after it.
    """

    verdict: Verdict
    reason: str
    loss_difference: float | None = None
    gradient_difference: float | None = None
    output_difference: float | None = None
    later_difference: float | None = None
    unit: float | None = None
    """The rounding of the coarser of both dtypes."""
    noise: float | None = None
    """How much the loop differs from itself: the largest of the same differences."""
    precision: str | None = None
    """The coarser of both dtypes."""
    steps: int = 0
    skipped_steps: int = 0
    """Optimizer steps that only the second setting left out, because gradients overflowed."""

    @property
    def ok(self) -> bool:
        """Whether the numbers are no reason against the setting."""
        return self.verdict == "as_expected"

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary; ``null`` means not seen."""
        return {name: _plain(value) for name, value in asdict(self).items()}


def coarser(*precisions: str) -> tuple[str, float]:
    """The precision with the largest rounding, and that rounding."""
    name = max(precisions, key=lambda each: ROUNDING.get(each, 2.0**-23))
    return name, ROUNDING.get(name, 2.0**-23)


def judge(
    a: Numbers,
    again: Numbers,
    b: Numbers,
    *,
    nudged: Numbers | None = None,
    by_design: Sequence[str] = (),
    said: str = "",
) -> Parity:
    """Compare b with a, in units of rounding and of what a differs from itself.

    Args:
        a: As it is.
        again: The same once more.
        b: The setting in question.
        nudged: As a, from weights that are off by one rounding: training amplifies differences,
            some optimizers out of all proportion.
        by_design: Settings of b that change gradients on purpose: only the first losses and
            outputs are compared then.
        said: What was done to make the two comparable.
    """
    own, other = _differences(a, again), _differences(a, b)
    precision, unit = coarser(a.precision, b.precision)
    grown = _differences(a, nudged) if nudged is not None else dict.fromkeys(own)
    noise = max((value for value in own.values() if value is not None), default=None)
    skipped = max(0, b.skipped_steps - a.skipped_steps)
    facts: dict[str, Any] = {
        **other,
        "unit": unit,
        "noise": noise,
        "precision": precision,
        "steps": len(b.losses),
        "skipped_steps": skipped,
    }
    broken = _broken(a, b)
    if broken is not None:
        return Parity(verdict="diverges", reason=broken, **facts)
    if by_design:
        other = {**other, "gradient_difference": None, "later_difference": None}
    if all(value is None for value in other.values()):
        return Parity(verdict="cannot_tell", reason=_UNSEEN, **facts)
    later = other["later_difference"]
    tame = NOISE_FACTOR * max(noise or 0.0, grown["later_difference"] or 0.0)
    if later is not None and later > max(DIVERGED, tame):
        why = f"the losses differ by {_percent(later)} after {len(b.losses)} steps"
        return Parity(verdict="diverges", reason=f"{why}.", **facts)
    beyond = _beyond(other, _allowed(precision, own, grown, len(b.losses)))
    if not beyond and skipped:
        beyond = f"{skipped} of {len(b.losses)} optimizer steps were skipped: gradients overflowed."
    if beyond:
        return Parity(verdict="differs", reason=f"{said}{beyond}", **facts)
    if a.losses and all(map(_is_broken, a.losses)):  # b's as well, or it would be broken
        return Parity(verdict="cannot_tell", reason=_NO_NUMBERS, **facts)
    kept = f"; {', '.join(by_design)} changes gradients on purpose" if by_design else ""
    lost = _lost_on_both(a, b)
    return Parity(
        verdict="as_expected",
        reason=f"{said}all differences are within the rounding of {precision}{kept}{lost}.",
        **facts,
    )


_UNSEEN = (
    "neither losses, gradients nor outputs could be seen: let the step return its loss, and give "
    "its optimizer to the Workload."
)
_NO_NUMBERS = (
    "all losses are NaN or infinite, with and without it: there are no numbers to compare. Find "
    "where the loop loses them first (torch.autograd.set_detect_anomaly(True))."
)
_NAMES = {
    "loss_difference": "the first loss differs",
    "gradient_difference": "the first gradient differs",
    "output_difference": "the model's output differs",
    "later_difference": "the losses after the first differ",
}


def _differences(a: Numbers, b: Numbers) -> dict[str, float | None]:
    losses = [_relative(x, y) for x, y in zip(a.losses, b.losses, strict=False)]
    norms = [_relative(x, y) for x, y in zip(a.gradient_norms, b.gradient_norms, strict=False)]
    later = [value for value in losses[1:] if value is not None]
    return {
        "loss_difference": losses[0] if losses else None,
        "gradient_difference": next((n for n in norms if n is not None), None),
        "output_difference": _distance(a.output, b.output),
        "later_difference": max(later, default=None),
    }


def _allowed(
    precision: str, own: dict[str, float | None], grown: dict[str, float | None], steps: int
) -> dict[str, float]:
    unit = ROUNDING.get(precision, 2.0**-23)
    loss = LOSS_UNITS.get(precision, 1.0) * unit
    vector = VECTOR_UNITS.get(precision, 4.0) * unit
    limits = {
        "loss_difference": loss,
        "gradient_difference": vector,
        "output_difference": vector,
        "later_difference": loss * GROWTH ** (steps - 1),
    }
    # Terms that cancel each other make more of one rounding than it is.
    return {
        name: max(limit, NOISE_FACTOR * (grown[name] or 0.0)) + NOISE_FACTOR * (own[name] or 0.0)
        for name, limit in limits.items()
    }


def _beyond(found: dict[str, float | None], allowed: dict[str, float]) -> str:
    """What is larger than rounding, as a sentence; empty when nothing is."""
    said = [
        f"{_NAMES[name]} by {_percent(value)}, at most {_percent(allowed[name])} is rounding"
        for name, value in found.items()
        if value is not None and value > allowed[name]
    ]
    return f"{'; '.join(said)}." if said else ""


def _broken(a: Numbers, b: Numbers) -> str | None:
    """What is NaN or infinite in b and not in a."""
    for name in ("losses", "gradient_norms"):
        pairs = zip(getattr(a, name), getattr(b, name), strict=False)
        for step, (x, y) in enumerate(pairs, start=1):
            if y is not None and not math.isfinite(y) and (x is None or math.isfinite(x)):
                what = "loss" if name == "losses" else "gradient norm"
                return f"the {what} of step {step} is {y}."
    lost = _lost(a.output, b.output)
    return f"{lost} numbers of the model's output are NaN or infinite." if lost else None


def _lost_on_both(a: Numbers, b: Numbers) -> str:
    """What could not be compared, because the loop itself gives no finite number there."""
    pairs = list(zip(a.losses, b.losses, strict=False))
    gone = sum(_is_broken(x) and _is_broken(y) for x, y in pairs)
    if not gone:
        return ""
    return f"; {gone} of {len(pairs)} losses are NaN or infinite with and without it, not compared"


def _is_broken(value: float | None) -> bool:
    return value is not None and not math.isfinite(value)


def _lost(a: Any, b: Any) -> int:
    """How many numbers of an output are not finite in b, and are in a."""
    import numpy as np

    if a is None or b is None or a.shape != b.shape:
        return 0
    return int((np.isfinite(a) & ~np.isfinite(b)).sum())


def _relative(a: float | None, b: float | None) -> float | None:
    if a is None or b is None or not (math.isfinite(a) and math.isfinite(b)):
        return None
    scale = max(abs(a), abs(b))
    return abs(b - a) / scale if scale > 0 else 0.0


def _distance(a: Any, b: Any) -> float | None:
    """Length of the difference over the length of a."""
    import numpy as np

    if a is None or b is None or a.shape != b.shape:
        return None
    both = np.isfinite(a) & np.isfinite(b)
    length = float(np.linalg.norm(a[both]))
    gone = float(np.linalg.norm(b[both] - a[both]))
    if not both.any() or (length == 0 and gone > 0):
        return None
    return gone / length if length > 0 else 0.0


def _percent(share: float) -> str:
    return f"{share * 100:.2g} %"


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
