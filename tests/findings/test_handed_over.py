"""A batch of very many tensors: taking it over is what the step waits for, not making it."""

import dataclasses

from workbench.analysis.loader_evidence import LoaderStages
from workbench.findings.finding import Facts
from workbench.findings.input_bound import input_bound
from workbench.findings.loader_advice import row_by_row
from workbench.findings.worker_count import worker_count

MS = 1_000_000


def stages(*, batches: int, fetch_ms: int, unpickle_ms: int) -> LoaderStages:
    """Of each batch: how long it takes to make, and to take over in the training process."""
    nothing = dict.fromkeys(field.name for field in dataclasses.fields(LoaderStages))
    known = {
        "batches": batches,
        "samples": 16 * batches,
        "batch_ns": fetch_ms * MS,
        "fetch_ns": fetch_ms * batches * MS,
        "fetch_cpu_ns": fetch_ms * batches * MS,
        "samples_ns": fetch_ms * batches * MS,
        "collate_ns": 0,
        "unpickle_ns": unpickle_ms * batches * MS,
        "cpu_share": 1.0,
    }
    return LoaderStages(**(nothing | known))  # type: ignore[arg-type]


def facts(workers: int, *, fetch_ms: int, unpickle_ms: int) -> Facts:
    """Steps of 30 ms that wait 25 ms; with batches at hand they take 5 ms."""
    return Facts(
        step_ns=(30 * MS,) * 20,
        input_ns=(25 * MS,) * 20,
        replay_step_ns=(5 * MS,) * 20,
        effective={"workers": workers},
        environment={"usable_cpus": 4},
        loader_stages=stages(batches=20, fetch_ms=fetch_ms, unpickle_ms=unpickle_ms),
    )


def test_no_worker_speeds_up_what_the_training_process_does_itself() -> None:
    # A batch is made in 10 ms and taken in 20: two workers bring one each 5 ms, and the loop can
    # take one each 25. The step's own 5 ms alone would have asked for two workers.
    slow = facts(1, fetch_ms=10, unpickle_ms=20)
    assert worker_count(slow) is None
    finding = input_bound(slow)
    assert finding is not None
    assert "Taking a batch over from its worker takes 20.0 ms" in finding.advice
    assert finding.setting == {"workers": 0}


def test_a_batch_that_takes_longer_to_make_still_asks_for_workers() -> None:
    # 60 ms to make, 2 to take: the loop can take one each 7 ms, so more than one worker is needed.
    finding = worker_count(facts(1, fetch_ms=60, unpickle_ms=2))
    assert finding is not None
    assert finding.evidence["needed_workers"] == 9
    assert finding.setting == {"workers": 4}


def test_waiting_for_workers_that_compute_is_no_work_of_the_training_process() -> None:
    # The same 20 ms to take a batch over, 18 of them until the worker's decoding lets go of the
    # interpreter: 10 ms to make one against 5 + 2 asks for two workers.
    slow = facts(1, fetch_ms=10, unpickle_ms=20)
    assert slow.loader_stages is not None
    known = dataclasses.replace(slow.loader_stages, unpickle_own_ns=2 * 20 * MS)
    told = dataclasses.replace(slow, loader_stages=known)
    finding = worker_count(told)
    assert finding is not None
    assert finding.setting == {"workers": 2}
    waiting = input_bound(told)
    assert waiting is not None
    assert waiting.setting == {"workers": 2}


def test_many_tensors_of_cheap_rows_are_no_table_read_row_by_row() -> None:
    """16 samples of 10 µs a batch, whose tensors take 1 ms of a processor to hand over.

    One index call for all 16 would save 160 µs, and leave every tensor to be handed over.
    """
    made = dataclasses.replace(
        stages(batches=10, fetch_ms=1, unpickle_ms=20),
        fetch_ns=10 * 16 * 10_000,
        samples_ns=10 * 16 * 10_000,
        batch_ns=16 * 10_000.0,
        samples_per_call=1.0,
    )
    assert made.sample_ns == 10_000
    slow = dataclasses.replace(facts(1, fetch_ms=1, unpickle_ms=20), loader_stages=made)
    assert row_by_row(slow)
    for work_ns, rows in ((200_000, True), (1_000_000, False)):
        known = dataclasses.replace(made, serialize_cpu_ns=5 * work_ns, unpickle_cpu_ns=5 * work_ns)
        assert row_by_row(dataclasses.replace(slow, loader_stages=known)) is rows
