"""Whether a gain lies within what the finding that advised it allowed."""

from types import SimpleNamespace
from typing import Any

import pytest

from workbench.run.bounds import bounds_held
from workbench.statistics.change import Change

MS = 1_000_000


def run(settings: dict[str, Any], *findings: Any) -> Any:
    """Steps of 100 ms."""
    timings = SimpleNamespace(step_ns=[900 * MS, *[100 * MS] * 20], warmup=1)
    record = SimpleNamespace(settings=settings, timings=timings)
    return SimpleNamespace(record=record, findings=findings)


def finding(code: str, setting: Any, bound_ms: float | None) -> Any:
    bound = None if bound_ms is None else bound_ms * MS
    return SimpleNamespace(code=code, setting=setting, saving_ns_per_step_at_most=bound)


def change(ratio: float, low: float, high: float) -> Change:
    return Change(verdict="faster", ratio=ratio, low=low, high=high, n_a=20, n_b=20)


ADVISED = finding("WB101", {"workers": 2}, 50)


@pytest.mark.parametrize(
    ("ratio", "low", "high", "said"),
    [
        (0.7, 0.65, 0.75, "measured: 30.0 ms (25.0 ms to 35.0 ms) less a step, within the bound."),
        (0.45, 0.3, 0.6, "above the bound by no more than chance."),
        (0.2, 0.1, 0.3, "above the bound, which was too low"),
        (1.1, 1.05, 1.2, "10.0 ms (5.00 ms to 20.0 ms) more a step, so it saves nothing here."),
        (0.98, 0.9, 1.1, "between 10.0 ms less and 10.0 ms more a step, so a gain cannot be told"),
    ],
)
def test_the_gain_of_the_advised_setting_is_laid_beside_its_bound(
    ratio: float, low: float, high: float, said: str
) -> None:
    """100 ms × (1 − ratio), against 50 at most."""
    (told,) = bounds_held(run({}, ADVISED), run({"workers": 2}), change(ratio, low, high))
    assert told.startswith(
        "WB101 said that workers=2 saves at most 50.0 ms a step (50 % of its mean time)"
    )
    assert said in told


def test_findings_of_one_setting_and_one_bound_are_said_once() -> None:
    """The wait for data and the work on samples are one and the same time here."""
    run_ = run({}, ADVISED, finding("WB102", {"workers": 2}, 50))
    (told,) = bounds_held(run_, run({"workers": 2}), change(0.7, 0.65, 0.75))
    assert told.startswith("WB101 and WB102 said that workers=2 saves at most 50.0 ms")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"workers": 4}),
        ({}, {"workers": 2, "precision": "bf16"}),
        ({}, {}),
        ({"precision": "bf16"}, {"workers": 2}),
    ],
    ids=["another value", "something else as well", "nothing", "another given up"],
)
def test_other_settings_than_the_advised_one_say_nothing_of_it(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert bounds_held(run(before, ADVISED), run(after), change(0.5, 0.4, 0.6)) == ()


def test_without_a_bound_or_a_measured_change_there_is_nothing_to_say() -> None:
    unknown = run({}, finding("WB105", {"workers": 2}, None))
    assert bounds_held(unknown, run({"workers": 2}), change(0.5, 0.4, 0.6)) == ()
    nobody = Change(verdict="cannot_tell", ratio=None, n_a=0, n_b=0)
    assert bounds_held(run({}, ADVISED), run({"workers": 2}), nobody) == ()
