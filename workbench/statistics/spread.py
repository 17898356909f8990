"""Whether values of a few steps on two sides differ by more than steps differ by themselves.

For each of many rows (kernels, operators) there are a handful of values a side, one a step. Their
means are compared by Welch's t (1947), which lets the sides spread differently; of all rows that
are named, 5 % may be false (Benjamini and Hochberg 1995), so that a table of a hundred kernels does
not name five by chance. What two recordings differ by as a whole (clock, heat) is in no step of
one: differences under ``LEAST_SHARE`` are never named.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FALSE_SHARE = 0.05
"""Of the rows that are named, the share that may be so by chance."""
LEAST_SHARE = 0.01
"""Device clocks drift by about this much between two recordings of the same program."""

Values = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Spread:
    """Difference of the means, second minus first, for each row."""

    difference: Values
    margin: Values
    """Half of the 95 % interval of the difference; NaN where a side has fewer than two steps."""
    beyond: NDArray[np.bool_]
    """The difference is more than the steps differ by themselves."""


def compare_rows(
    a: Values, b: Values, *, rounding_a: Values | float = 0.0, rounding_b: Values | float = 0.0
) -> Spread:
    """Compare two tables of equal height: a row a name, a column a step.

    Args:
        a: Values of the first side.
        b: Values of the second side.
        rounding_a: Variance that rounded time stamps alone give a value of ``a``, by row: values
            that are rounded to microseconds look alike without being so.
        rounding_b: The same for ``b``.
    """
    difference = _mean(b) - _mean(a)
    n_a, n_b = a.shape[1], b.shape[1]
    if min(n_a, n_b) < 2 or not len(a):
        nothing = np.full(len(a), np.nan)
        return Spread(
            difference=difference, margin=nothing, beyond=np.zeros(len(a), dtype=np.bool_)
        )
    own_a = np.maximum(a.var(axis=1, ddof=1), rounding_a) / n_a
    own_b = np.maximum(b.var(axis=1, ddof=1), rounding_b) / n_b
    error = np.sqrt(own_a + own_b)
    freedom = _freedom(own_a, own_b, n_a, n_b)
    margin, chance = _student(difference, error, freedom)
    large = np.abs(difference) > LEAST_SHARE * np.maximum(_mean(a), _mean(b))
    return Spread(difference=difference, margin=margin, beyond=_named(chance) & large)


def _mean(values: Values) -> Values:
    return values.mean(axis=1) if values.shape[1] else np.full(len(values), np.nan)


def _freedom(own_a: Values, own_b: Values, n_a: int, n_b: int) -> Values:
    """Welch and Satterthwaite's degrees of freedom, 1 at the least."""
    below = own_a**2 / (n_a - 1) + own_b**2 / (n_b - 1)
    whole = (own_a + own_b) ** 2
    return np.maximum(np.divide(whole, below, out=np.ones_like(whole), where=below > 0), 1.0)


def _student(difference: Values, error: Values, freedom: Values) -> tuple[Values, Values]:
    """Half of the 95 % interval, and the chance of so large a difference between equals."""
    from scipy.special import stdtr, stdtrit

    margin = stdtrit(freedom, 0.975) * error
    exact = np.where(difference == 0, 0.0, -np.inf)
    t = np.divide(-np.abs(difference), error, out=exact, where=error > 0)
    return np.asarray(margin), np.asarray(2 * stdtr(freedom, t))


def _named(chance: Values) -> NDArray[np.bool_]:
    """Benjamini and Hochberg: the largest k whose k-th smallest chance is below k/m of 5 %."""
    order = np.argsort(chance, kind="stable")
    allowed = FALSE_SHARE * np.arange(1, len(chance) + 1) / len(chance)
    held = np.flatnonzero(chance[order] <= allowed)
    named = np.zeros(len(chance), dtype=np.bool_)
    if len(held):
        named[order[: held[-1] + 1]] = True
    return named
