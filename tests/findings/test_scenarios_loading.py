"""Reports of slow loading from practice: what making a batch costs (D01, D04, D13).

Small real loaders where the cause can be made here, facts written by hand where it needs a machine
that is not here. Costs are far from the thresholds, so that a busy machine changes no verdict.
"""

import warnings
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader

from tests.findings.facts import MB, MS, codes, found, stages, waiting
from tests.findings.loading import (
    Arrays,
    BatchedRows,
    Piped,
    Rows,
    Working,
    as_it_is,
    list_of_arrays,
    profiled,
    slow_pipe,
    stacked,
)
from tests.findings.loops import fired, of
from workbench.analysis.loader_evidence import EpochStart

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]


# D01: a table in memory read one row at a time


@pytest.mark.parametrize("workers", [0, 1])
def test_d01_rows_of_a_table_are_fetched_at_once_and_never_by_more_workers(
    workers: int, tmp_path: Path
) -> None:
    run = profiled(DataLoader(Rows(), 256, num_workers=workers), tmp_path)
    finding = fired(run, "WB102")
    assert "__getitems__" in finding.advice
    for each in run.findings:
        assert "workers" not in (each.setting or {}), each


def test_d01_a_table_that_is_fetched_at_once_is_silent(tmp_path: Path) -> None:
    run = profiled(DataLoader(BatchedRows(), 256, collate_fn=as_it_is), tmp_path)
    assert of(run, "WB102") is None
    for each in run.findings:
        assert "workers" not in (each.setting or {}), each


def test_d01_rows_stay_cheap_where_others_take_the_processors() -> None:
    """256 rows of 5 µs; a busy machine makes 40 ms of 1.3, 160 µs a row, and workers no help."""
    made = stages(
        batches=10, samples=2560, batch_ns=40.0 * MS, batch_able_ns=1.3 * MS, fetch_ns=400 * MS,
        fetch_cpu_ns=13 * MS, run_delay_ns=387 * MS, samples_ns=390 * MS, collate_ns=10 * MS,
    )  # fmt: skip
    finding = found(waiting(45, 40, loader_stages=made, effective={"workers": 0}), "WB101")
    assert finding is not None
    assert "__getitems__" in finding.advice
    assert "workers" not in (finding.setting or {})


@pytest.mark.parametrize(("workers", "setting"), [(0, None), (1, {"workers": 0})])
def test_d01_two_rows_a_batch_are_no_work_for_a_worker(workers: int, setting: object) -> None:
    """A batch of two rows takes 40 µs, and a worker hands one over in 100 and more."""
    made = stages(
        samples=20, batch_ns=40_000.0, fetch_ns=400_000, fetch_cpu_ns=400_000,
        samples_ns=300_000, collate_ns=100_000,
    )  # fmt: skip
    facts = waiting(0.4, 0.1, loader_stages=made, effective={"workers": workers})
    finding = found(facts, "WB101")
    assert finding is not None
    assert finding.setting == setting
    assert "larger batches" in finding.advice
    assert found(facts, "WB105") is None


# D04: augmentation starves a fast device, and not a slow one


def test_d04_a_fast_step_starves_and_both_rates_are_said_first(tmp_path: Path) -> None:
    """40 ms to make a batch, 10 ms to use it."""
    run = profiled(DataLoader(Working(sleep=0.01), 4, num_workers=1), tmp_path, step_s=0.01)
    finding = fired(run, "WB101")
    assert finding.evidence["needed_loader_speedup"] > 2
    text = " ".join(repr(run).split())
    assert "The loader is the limit: it would have to be" in text
    assert text.index("the model can take") < text.index(finding.advice[:40])


def test_d04_a_slow_step_does_not_and_no_advice_is_given(tmp_path: Path) -> None:
    """8 ms to make a batch, 200 ms to use it: moving transforms to the device would cost."""
    loader = DataLoader(Working(sleep=0.002), 4, num_workers=1)
    run = profiled(loader, tmp_path, step_s=0.2, steps=6)
    waits = of(run, "WB101")
    assert waits is None or waits.severity == "info"  # taking a batch over on a busy machine
    assert not {f.code for f in run.findings} & {"WB102", "WB105"}
    text = " ".join(repr(run).split())
    assert "the loader keeps up" in text or "The loader is no limit" in text  # a twentieth or less


@pytest.mark.parametrize("sample_ms", [10, 20, 30, 39, 41, 60, 100])
def test_d04_the_verdict_flips_where_the_cost_crosses_the_step(sample_ms: int) -> None:
    """8 samples on 8 workers against a step of 40 ms: a batch comes every ``sample_ms``."""
    step = max(40, sample_ms)
    each = sample_ms * 8 * MS
    made = each * 10
    facts = waiting(
        step,
        step - 40,
        replay_step_ns=(40 * MS,) * 6,
        loader_alone_batch_ns=float(sample_ms * MS),
        loader_stages=stages(
            batch_ns=each, fetch_ns=made, fetch_cpu_ns=made, samples_ns=made, collate_ns=0
        ),
        effective={"workers": 8},
    )
    starves = (step - 40) / step > 0.05
    assert (found(facts, "WB101") is not None) is starves
    assert (found(facts, "WB102") is not None) is starves


# D13: a tensor made from a list of arrays


def test_d13_collate_dominates_and_torchs_own_warning_is_quoted(tmp_path: Path) -> None:
    loader = DataLoader(Arrays(), 10, collate_fn=list_of_arrays)
    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)  # else once per process, and other tests may have heard it
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            with pytest.warns(UserWarning, match="extremely slow"):
                finding = fired(profiled(loader, tmp_path, steps=6), "WB102")
    finally:
        torch.set_warn_always(always)
    assert "collating" in finding.title
    assert finding.evidence["collate_share"] > 0.5
    assert "numpy.stack" in finding.advice


def test_d13_arrays_that_are_stacked_first_are_silent(tmp_path: Path) -> None:
    loader = DataLoader(Arrays(), 10, collate_fn=stacked)
    assert of(profiled(loader, tmp_path, steps=6, step_s=0.02), "WB102") is None


# What waits, and what works


def test_reads_that_wait_are_storage_and_no_work_on_samples(tmp_path: Path) -> None:
    """10 ms until the bytes of a sample are there."""
    with slow_pipe(tmp_path / "pipe", 0.01) as path:
        run = profiled(DataLoader(Piped(path), 4), tmp_path, steps=6, step_s=0.01)
    finding = fired(run, "WB103")
    assert finding.evidence["read_share"] > 0.5
    assert finding.evidence["cpu_share"] < 0.5
    assert of(run, "WB102") is None


def test_work_on_samples_is_no_storage(tmp_path: Path) -> None:
    run = profiled(DataLoader(Working(cpu=0.004), 4), tmp_path, steps=6, step_s=0.005)
    assert "decoding" in fired(run, "WB102").title
    assert of(run, "WB103") is None


def epoch(fetch_ms: float, stored_mb: float, rest_ms: float | None = None) -> EpochStart:
    return EpochStart(
        start_wait_ns=0,
        median_wait_ns=0,
        batches=10,
        length_ns=MS,
        batch_fetch_ns=fetch_ms * MS,
        storage_bytes=int(stored_mb * MB),
        workers=0,
        batch_resting_ns=None if rest_ms is None else rest_ms * MS,
    )


@pytest.mark.parametrize("rest_ms", [None, 45])
def test_a_cold_first_epoch_is_told_from_a_slow_disk(rest_ms: float | None) -> None:
    """40 ms longer, all of them at rest where that was seen: 45 against 5 ms."""
    later = epoch(20, 0, None if rest_ms is None else 5)
    cold = waiting(100, 0, epoch_starts=(epoch(60, 50, rest_ms), later, later))
    finding = found(cold, "WB103")
    assert finding is not None
    assert finding.evidence["ratio"] == pytest.approx(3)
    assert finding.severity == "info"


@pytest.mark.parametrize(
    "epochs",
    [
        (epoch(60, 0), epoch(20, 0)),
        (epoch(28, 50), epoch(20, 0)),
        (epoch(60, 50), epoch(30, 50)),
        (epoch(60, 50),),
        (epoch(60, 0.005, 6), epoch(20, 0, 5)),
    ],
    ids=["nothing read", "hardly slower", "read again", "one epoch", "waited for a processor"],
)
def test_a_slow_first_epoch_without_storage_is_no_cold_cache(
    epochs: tuple[EpochStart, ...],
) -> None:
    assert "WB103" not in codes(waiting(100, 0, epoch_starts=epochs))
