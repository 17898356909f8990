"""A comparison of two Runs, as a page and as text."""

import pytest

from workbench.pages.comparison import ComparisonView, comparison_html, comparison_text


@pytest.mark.parametrize("shown", [comparison_html, comparison_text], ids=["page", "terminal"])
def test_runs_whose_times_differ_are_not_said_to_differ_in_nothing(shown: object) -> None:
    """The step went from 20 to 10 ms, with the same settings: times are a difference."""
    view = ComparisonView(sentence="Faster.", rows=(("step", "20.0 ms", "10.0 ms"),))
    assert callable(shown)
    said = shown(view)
    assert "Besides times, nothing that was recorded differs" in said
    assert "Nothing else" not in said
