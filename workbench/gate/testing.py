"""The tests behind a verdict: how sure it is that one side is worse, and how far it may be.

Each side is a handful of numbers, one a block of steps. That the second is worse by more than a
limit is only believed where three tests agree: Welch's t (1947), the exact rank test (Mann and
Whitney 1947), which no wild value and no odd shape of the noise fools, and, for sides that were
measured one after the other, Student's t over the halves of each side (Ibragimov and Müller 2010):
a machine that drifts within one side may have drifted between both. The largest of the three
chances counts.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.statistics.ranks import chance_of_more

Values = NDArray[np.float64]

LEAST_BLOCKS = 4
"""Fewer numbers a side have no spread worth the name."""
POWER = 0.9
"""The smallest effect is the one that would be found so often."""
NORMAL_90 = 1.2816
HALVES_DF = 2
CERTAIN = 0.95
"""Of the one-sided interval that a pass rests on."""


@dataclass(frozen=True, kw_only=True)
class Shift:
    """How far the second side lies from the first, on the scale of the values."""

    estimate: float
    error: float
    """Standard error by Welch."""
    freedom: float
    drift: float | None
    """Standard error from what halves of each side differ by; ``None`` where sides took turns."""
    a: Values
    b: Values

    def chance(self, limit: float) -> float:
        """Of seeing so much if the second side were worse by ``limit`` at most."""
        from scipy.special import stdtr

        away = self.estimate - limit
        if away <= 0:
            return 1.0
        chances = [float(stdtr(self.freedom, -away / self.error)) if self.error else 0.0]
        chances.append(chance_of_more(self.a, self.b - limit))
        if self.drift is not None:
            chances.append(float(stdtr(HALVES_DF, -away / self.drift)) if self.drift else 0.0)
        return max(chances)

    def upper(self) -> float:
        """The far end of what the second side may be worse by, at 95 % on one side."""
        return self.estimate + self.margin(1 - CERTAIN)

    def lower(self) -> float:
        """The near end of the same."""
        return self.estimate - self.margin(1 - CERTAIN)

    def margin(self, level: float) -> float:
        """How far the estimate must lie from a limit to be beyond it at this level."""
        from scipy.special import stdtrit

        margin = float(stdtrit(self.freedom, 1 - level)) * self.error
        if self.drift is not None:
            margin = max(margin, float(stdtrit(HALVES_DF, 1 - level)) * self.drift)
        return margin

    def smallest_effect(self, level: float) -> float:
        """The smallest shift beyond the limit that would be found in nine of ten gates."""
        return self.margin(level) + NORMAL_90 * self.error


def shift_between(a: Values, b: Values, *, interleaved: bool) -> Shift | None:
    """The shift from a to b; ``None`` with fewer than four numbers on a side."""
    if min(a.size, b.size) < LEAST_BLOCKS:
        return None
    own = a.var(ddof=1) / a.size, b.var(ddof=1) / b.size
    error = float(np.sqrt(sum(own)))
    below = own[0] ** 2 / (a.size - 1) + own[1] ** 2 / (b.size - 1)
    freedom = float(sum(own) ** 2 / below) if below > 0 else float(a.size + b.size - 2)
    drift = None if interleaved else float(np.hypot(_halves(a), _halves(b))) / 2
    return Shift(
        estimate=float(b.mean() - a.mean()),
        error=error,
        freedom=max(freedom, 1.0),
        drift=drift,
        a=a,
        b=b,
    )


def _halves(values: Values) -> float:
    """Later half minus earlier half; the middle one of an odd number is left out."""
    half = values.size // 2
    return float(values[values.size - half :].mean() - values[:half].mean())


def holm(chances: dict[str, float]) -> dict[str, float]:
    """Chances corrected for their number (Holm 1979): all below a level hold together at it."""
    corrected, highest = {}, 0.0
    for rank, (name, chance) in enumerate(sorted(chances.items(), key=lambda each: each[1])):
        highest = max(highest, min(1.0, chance * (len(chances) - rank)))
        corrected[name] = highest
    return corrected
