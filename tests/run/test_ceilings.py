"""Both rates of a loop in words, before any advice."""

from typing import Any

import pytest

from tests.store.records import record
from workbench.pages.run import run_html, run_text
from workbench.pages.view import RunView
from workbench.run.ceilings import ceilings
from workbench.store.record import RunRecord, Timings

MS = 1_000_000


def measured(*, step_ms: int, batch_ms: float, workers: int | None = 2, **more: Any) -> RunRecord:
    """32 samples a batch."""
    timings = Timings(
        step_ns=[100 * MS] * 4,
        input_ns=[],
        warmup=0,
        blocks=[2, 2],
        profiled_step_ns=[],
        replay_ns=[step_ms * MS] * 5,
    )
    alone = {
        "batches": 8,
        "seconds": 8 * batch_ms / 1000,
        "batches_per_s": 1000 / batch_ms,
        "samples_per_s": 32_000 / batch_ms,
        "epochs": 0,
    }
    given = {"samples_per_step": 32.0, "effective": {"workers": workers}} | more
    return record(timings=timings, loader_alone=alone, **given)


@pytest.mark.parametrize(
    ("step_ms", "batch_ms", "said"),
    [
        (100, 250, "it would have to be 2.50 times as fast"),
        (100, 50, "Once it runs, the loader keeps up."),
        (100, 95, "only just"),
        (100, 1, "The loader is no limit."),
    ],
)
def test_what_the_two_rates_mean_together(step_ms: int, batch_ms: float, said: str) -> None:
    text = ceilings(measured(step_ms=step_ms, batch_ms=batch_ms))
    assert text is not None
    assert said in text


def test_the_rates_are_samples_a_second() -> None:
    """32 samples in 100 ms: 320; in 250 ms: 128."""
    text = ceilings(measured(step_ms=100, batch_ms=250))
    assert text is not None
    assert text.startswith("Without the profiler, the model can take 320 samples/s (a step on ")
    assert "the loader alone brings 128 (250 ms a batch)" in text


def test_without_samples_they_are_batches() -> None:
    text = ceilings(measured(step_ms=100, batch_ms=250, samples_per_step=None))
    assert text is not None
    assert "10.0 batches/s" in text
    assert "brings 4.00" in text


def test_in_one_process_a_step_takes_both() -> None:
    text = ceilings(measured(step_ms=100, batch_ms=250, workers=0))
    assert text is not None
    assert "side by side it takes at least 250 ms" in text


def test_what_was_not_measured_is_not_said() -> None:
    assert ceilings(record()) is None
    assert ceilings(None) is None


def test_a_page_says_it_before_the_findings_and_only_then() -> None:
    view = RunView(title="mine", verdict="Input-bound.", ceilings="The <model> can take 320.")
    assert "The &lt;model&gt; can take 320." in run_html(view)
    assert run_text(view).splitlines()[:3] == ["mine", "Input-bound.", "The <model> can take 320."]
    assert run_text(RunView(title="mine", verdict="Fine.")).splitlines()[:2] == ["mine", "Fine."]
