"""Whether one series of step times is faster or slower than another, or nobody can tell."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from workbench.statistics.blocks import (
    LEAST_STEPS,
    Block,
    half_difference,
    log_means,
    log_medians,
    split_to,
    usable,
)
from workbench.statistics.noise import noise_floor, typical_difference
from workbench.statistics.ranks import shift_interval

Verdict = Literal["faster", "slower", "cannot_tell"]

LEAST_BLOCKS = 4
"""Four blocks a side is the least for which ranks can reach the 95 % level: 2 of 70 orders."""
HALVES_95 = 2.15
"""Half of Student's t at 97.5 % with two degrees of freedom (4.30): four halves, two means."""


LEAST_EFFECT = 1e-3
"""No interval is narrower: clocks tick, and steps that seem all alike differ by less than that
without any reason (own choice)."""
TOO_NOISY = 1.0
"""Where only a change of more than this could be told, the numbers say nothing (own choice)."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """Step time of b relative to a, with what can and cannot be said about it."""

    verdict: Verdict
    """``faster`` means that b takes less time than a."""
    ratio: float | None
    """Step time of b ÷ step time of a, from block medians; ``None`` without data."""
    low: float | None = None
    high: float | None = None
    """Ends of the 95 % interval of the ratio; the verdict is given when it leaves out 1."""
    noise_floor: float | None = None
    """The larger relative A/A spread of the two sides."""
    smallest_effect: float | None = None
    """The smallest relative change that this measurement could have told from chance."""
    n_a: int
    n_b: int
    """Steps of each side that the answer rests on."""
    reason: str | None = None
    """Why nobody can tell, and what would help; ``None`` with another verdict."""
    uneven: bool = False
    """Whether all steps together say otherwise than the typical step: some take much longer."""

    @property
    def too_noisy(self) -> bool:
        """Whether nobody can tell, and not even twice the time could have been told."""
        effect = self.smallest_effect
        return self.verdict == "cannot_tell" and effect is not None and effect > TOO_NOISY


def compare_steps(
    a_blocks: Sequence[Block],
    b_blocks: Sequence[Block],
    *,
    again: Sequence[Block] = (),
    interleaved: bool = False,
) -> Change:
    """Compare two sets of step times, each given as blocks of consecutive steps.

    The blocks of a side were measured under the same conditions, in order of time, warm-up left
    out. With ``interleaved`` the sides took turns (A B A B …), so that a slow drift of the machine
    met both. Otherwise they are two measurements one after the other, and the interval is widened
    to what each side drifted within itself: to hold, a difference must exceed the differences
    between earlier and later halves by Student's t (Ibragimov and Müller 2010).

    The interval comes from the ranks of block medians and is never narrower than the noise floor.
    Sides of two or three long blocks are cut into four or more. A load that comes and stays while
    b is measured looks like a change of b in any step times: compare the recorded load as well.

    ``again`` is a second series of a that took its turns beside the others. What a differs from
    itself is then measured under the very conditions in which it is compared: it is part of the
    noise floor, and both series together are compared with b.
    """
    a, b, twin = usable(a_blocks), usable(b_blocks), usable(again)
    floors = [f for f in (noise_floor(a), noise_floor(b), _apart(a, twin)) if f is not None]
    floor = max(floors, default=None)
    own = float(np.log1p(_apart(a, twin) or 0.0))
    a = [*a, *twin]
    n_a, n_b = (sum(block.size for block in side) for side in (a, b))
    lacking = _lacking(a, b, interleaved=interleaved)
    if not interleaved:
        a, b = split_to(a, LEAST_BLOCKS), split_to(b, LEAST_BLOCKS)
    medians = log_medians(a), log_medians(b)
    found = shift_interval(*medians)
    if lacking is not None or found is None:
        ratio = float(np.exp(_middle(*medians))) if a and b else None
        return Change(
            verdict="cannot_tell",
            ratio=ratio,
            noise_floor=floor,
            n_a=n_a,
            n_b=n_b,
            reason=lacking or _TOO_SHORT,
        )
    shift, low, high = found
    margin = max(own, _margin(*medians, interleaved=interleaved), float(np.log1p(LEAST_EFFECT)))
    low, high = min(low, shift - margin), max(high, shift + margin)
    typical: Verdict = "faster" if high < 0 else "slower" if low > 0 else "cannot_tell"
    uneven = _uneven(a, b, typical, (low, high))
    verdict: Verdict = "cannot_tell" if uneven else typical
    return Change(
        verdict=verdict,
        ratio=float(np.exp(shift)),
        low=float(np.exp(low)),
        high=float(np.exp(high)),
        noise_floor=floor,
        smallest_effect=float(np.expm1(max(shift - low, high - shift))),
        n_a=n_a,
        n_b=n_b,
        reason=uneven or _reason(verdict, float(np.expm1(max(shift - low, high - shift)))),
        uneven=uneven is not None,
    )


def _reason(verdict: Verdict, smallest_effect: float) -> str | None:
    if verdict != "cannot_tell":
        return None
    return _NOISE_ONLY if smallest_effect > TOO_NOISY else _WITHIN_NOISE


def _uneven(
    a: list[NDArray[np.float64]],
    b: list[NDArray[np.float64]],
    typical: Verdict,
    interval: tuple[float, float],
) -> str | None:
    """Why the typical step is not the pace: all steps together say otherwise, beyond chance.

    A median does not see a step in five that takes twice the time, and the loop does.
    """
    found = shift_interval(log_means(a), log_means(b))
    if found is None:
        return None
    shift, low, high = found
    least = float(np.log1p(LEAST_EFFECT))
    whole = "faster" if high < -least else "slower" if low > least else "cannot_tell"
    within = typical == "cannot_tell" and interval[0] <= shift <= interval[1]
    if within or whole in {"cannot_tell", typical}:
        return None
    return (
        f"all steps together take {np.exp(shift):.3g} times as long, the typical step does not: "
        "some steps of one side are much slower than its others; look at the step times."
    )


_TOO_SHORT = (
    f"the blocks of steps are too few or too short; measure at least {LEAST_BLOCKS} blocks of "
    f"{LEAST_STEPS} steps on each side."
)
_NOISE_ONLY = (
    "the measurements are too noisy to say anything: only a change to more than double could be "
    "told from chance; measure again on a quiet machine."
)
_WITHIN_NOISE = (
    "the difference is within what the same steps differ by themselves; "
    "measure more blocks, or on a quieter machine."
)


def _apart(a: list[NDArray[np.float64]], twin: list[NDArray[np.float64]]) -> float | None:
    """By how much two series of the same thing differ, as a share."""
    if not a or not twin:
        return None
    return float(np.expm1(abs(np.median(log_medians(a)) - np.median(log_medians(twin)))))


def _lacking(
    a: list[NDArray[np.float64]], b: list[NDArray[np.float64]], *, interleaved: bool
) -> str | None:
    """What keeps the two sides from being compared at all."""
    fewest = min(len(a), len(b))
    if fewest == 0:
        return f"there is no block of at least {LEAST_STEPS} measured steps on one side."
    if fewest == 1:
        return (
            "one side was measured in one block only, so nobody knows how much it differs from "
            "itself; measure each side at least twice."
        )
    return _TOO_SHORT if interleaved and fewest < LEAST_BLOCKS else None


def _middle(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    return float(np.median(b[:, None] - a[None, :]))


def _margin(a: NDArray[np.float64], b: NDArray[np.float64], *, interleaved: bool) -> float:
    """The least half-width of the interval, as a logarithm."""
    typical = max(typical_difference(a), typical_difference(b))
    if interleaved:
        return typical
    earlier_later = abs(half_difference(a)), abs(half_difference(b))
    return max(typical, *earlier_later, HALVES_95 * float(np.hypot(*earlier_later)))
