"""A change with its interval, as it stands before the word "time"."""

import pytest

from workbench.figures.comparison import interval_text


@pytest.mark.parametrize(
    ("ratio", "low", "high", "said"),
    [
        (0.69, 0.66, 0.72, "31 % (28–34) less"),
        (1.25, 1.20, 1.30, "25 % (20–30) more"),
        (1.00, 0.96, 1.05, "between 4.0 % less and 5.0 % more"),
        # Two steps a side: 0.05 ± 0.12. Nothing takes less than no time, so 100 and not 107.
        (0.05, -0.07, 0.17, "95 % (83–100) less"),
        (0.90, -0.20, 2.00, "between 100 % less and 100 % more"),
    ],
)
def test_an_interval_never_promises_more_than_all_of_the_time(
    ratio: float, low: float, high: float, said: str
):
    assert interval_text(ratio, low, high) == said
