"""Looking closely stays within its share, and the overhead that is told is an upper bound."""

from typing import Any

from torch.utils.data import DataLoader

from tests.recording.loader.datasets import Stages
from tests.recording.loader.driving import record
from workbench.recording.loader.budget import OUTLIER, SHARE, Budget
from workbench.recording.loader.layout import MISSING
from workbench.recording.loader.overhead import delivery_cost_ns, overhead
from workbench.recording.loader.reads import CALLS_LEAST, Reads


def test_no_more_is_spent_than_the_share_of_what_was_measured() -> None:
    budget = Budget()
    budget.measured_ns = 1_000_000
    most = int(SHARE * 1_000_000)
    assert budget.allows(most)
    assert not budget.allows(most + 1)
    assert budget.spend(most, usual_ns=most) == most
    assert not budget.allows(1)
    assert budget.allows(1, current_ns=1_000_000)


def test_the_next_look_is_due_when_its_share_has_been_measured() -> None:
    """0.3 % of 1 ms is 3 µs: with 1 µs spent, another 2 µs are due at 1 ms; what is free is now."""
    budget = Budget()
    budget.spend(1_000, usual_ns=1_000)
    assert budget.due_ns(2_000) == 1_000_000
    assert budget.due_ns(0) == 0


def test_the_fixed_cost_of_short_batches_leaves_less_for_looking() -> None:
    """10 µs are 0.1 % of batches of 10 ms, 0.2 of 0.3 % are left; of batches of 1 ms, the least."""
    long, short = Budget(each_ns=10_000), Budget(each_ns=10_000)
    long.batches = short.batches = 100
    long.measured_ns, short.measured_ns = 1_000_000_000, 100_000_000
    assert long.left() == 2_000_000
    assert short.left() == 100_000


def test_a_probe_that_was_interrupted_does_not_use_up_the_budget() -> None:
    budget = Budget()
    budget.spend(1_000_000, usual_ns=100)
    assert budget.spent_ns == OUTLIER * 100


def test_a_sample_of_too_many_calls_is_given_up_and_not_measured() -> None:
    reads = Reads()
    reads.begin()
    for number in range(2 * CALLS_LEAST):
        abs(number)
    assert reads.end() == (MISSING, MISSING)
    reads.begin()
    abs(1)
    assert reads.end() == (0, 0)


def test_the_overhead_is_the_larger_of_workers_and_training_process() -> None:
    rows: list[dict[str, Any]] = [
        {"fetch_ns": 1_000_000, "probe_ns": 10_000, "worker": None, "wait_start_ns": start}
        for start in (0, 1_000_000_000)
    ]
    told = overhead(rows)
    assert told["overhead_parts"]["workers"] == 0.01
    assert told["overhead_parts"]["training_process"] < 0.001
    assert told["overhead_share"] == 0.01
    assert overhead([])["overhead_share"] is None


def test_the_training_processs_probes_cost_microseconds_a_batch() -> None:
    assert 0 < delivery_cost_ns() < 1_000_000


def test_looking_at_long_samples_covers_most_of_them() -> None:
    _, recorder = record(DataLoader(Stages(32, sleep=0.02), 4))
    items = [item for row in recorder.batches for item in row.get("items", ())]
    # Looking costs some 20 µs, the share of 20 ms is 60 µs: every sample can be looked at, but a
    # busy machine makes some probes look dearer.
    assert len(items) >= 8
