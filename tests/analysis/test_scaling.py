"""The model of scaling against a simulated job whose link, compute and chance are known."""

import statistics
from dataclasses import replace

import pytest

from tests.simulator.ranks import Job, ring_ns, run
from workbench.analysis.scaling.model import Model, expected_maximum, fit_model
from workbench.analysis.scaling.points import Point
from workbench.statistics.link import Timed, fit_link

MS, MB = 1e6, 2**20
JOB = Job(
    samples=32,
    forward_ns=0.5 * MS,
    backward_ns=1 * MS,
    buckets=(25 * MB, 25 * MB, 8 * MB, 2 * MB),
    latency_ns=20_000,
    ns_per_byte=0.1,  # 10 GB/s
)


def modelled(points: list[Point]) -> Model:
    found = fit_model(points)
    assert found is not None
    return found


def test_the_link_is_found_from_the_times_of_two_sizes_of_messages() -> None:
    """A ring of 4: six messages of 20 µs + a quarter of the bytes at 10 GB/s each."""
    timed = [
        Timed(kind="all_reduce", ranks=4, bytes=size, ns=ring_ns(JOB, 4, size))
        for size in (1000, 64_000, 25 * MB)
    ]
    link = fit_link(timed)
    assert link is not None
    assert link.latency_ns == pytest.approx(20_000)
    assert link.gb_s == pytest.approx(10)
    assert link.error == pytest.approx(0, abs=1e-9)
    assert link.time_ns("all_reduce", 64, 25 * MB) == pytest.approx(ring_ns(JOB, 64, 25 * MB))


def test_one_size_alone_is_all_bandwidth_and_nothing_sent_is_no_link() -> None:
    one = fit_link([Timed(kind="broadcast", ranks=2, bytes=1000, ns=500)])
    assert one is not None
    assert (one.latency_ns, one.gb_s) == (0, pytest.approx(2))
    assert fit_link([Timed(kind="all_reduce", ranks=1, bytes=5, ns=1)]) is None
    empty = fit_link([Timed(kind="broadcast", ranks=4, bytes=0, ns=500)])
    assert empty is not None
    assert (empty.latency_ns, empty.gb_s) == (250, None), "two hops of a tree"


@pytest.mark.parametrize(
    "job",
    [
        JOB,
        replace(JOB, ns_per_byte=1.0),
        replace(JOB, latency_ns=2 * MS),
        replace(JOB, samples=4, ns_per_byte=0.5),
    ],
    ids=["hidden but for the last", "slow link", "far away", "little compute"],
)
def test_larger_sizes_are_predicted_within_the_stated_error(job: Job) -> None:
    """Measured at 1, 2, 4 and 8 ranks; the simulation of 16, 32 and 64 is the truth."""
    model = modelled([run(job, ranks) for ranks in (1, 2, 4, 8)])
    assert model.error is not None
    for ranks in (16, 32, 64):
        truth = run(job, ranks)
        said = model.predict(ranks)
        ideal = run(job, 1).step_ns / truth.step_ns
        assert said.predicted
        assert said.efficiency == pytest.approx(ideal, rel=0.15)
        assert said.low is not None
        assert said.high is not None
        assert said.low <= said.efficiency <= said.high <= 1


def test_ranks_that_differ_by_chance_wait_for_the_latest() -> None:
    """Nothing to send but a barrier's worth: a step takes the expected maximum of n draws more."""
    job = replace(JOB, spread_ns=2 * MS, buckets=(8,), latency_ns=0, ns_per_byte=1e-6, steps=400)
    model = modelled([run(job, ranks) for ranks in (1, 2, 4, 8)])
    assert model.spread_ns == pytest.approx(2 * MS, rel=0.1)
    truth = run(job, 64)
    assert model.step_ns(64) == pytest.approx(truth.step_ns, rel=0.02)
    assert model.wait_ns(64) == pytest.approx(truth.wait_ns, rel=0.1)


def test_expected_maximum_of_normal_deviations() -> None:
    """1/√π of two, 3/(2√π) of three: known exactly."""
    root = statistics.NormalDist().pdf(0) * 2**0.5  # 1/√π
    assert expected_maximum(1) == 0
    assert expected_maximum(2) == pytest.approx(root, rel=1e-4)
    assert expected_maximum(3) == pytest.approx(1.5 * root, rel=1e-4)


def test_strong_scaling_divides_the_samples_and_keeps_the_fixed_part() -> None:
    """64 samples in all: a rank's share shrinks, 10 ms of every step do not."""
    whole = replace(JOB, fixed_ns=10 * MS, buckets=(1000,), latency_ns=1000)
    points = [run(replace(whole, samples=64 // ranks), ranks) for ranks in (1, 2, 4, 8)]
    model = modelled(points)
    assert model.kind == "strong"
    assert model.fixed_ns == pytest.approx(10 * MS, rel=0.01)
    truth = run(replace(whole, samples=4), 16)
    assert model.step_ns(16) == pytest.approx(truth.step_ns, rel=0.02)
    # one rank: 10 + 64 × 1.5 = 106 ms; a sixteenth of it, 6.6 ms, over 16 ms a step
    assert model.predict(16).efficiency == pytest.approx(106 / 16 / 16, rel=0.02)


def test_efficiency_and_losses_sum_to_one() -> None:
    slow = replace(JOB, ns_per_byte=1.0, spread_ns=MS)
    points = [run(slow, ranks) for ranks in (1, 2, 4)]
    model = modelled(points)
    for share in [*map(model.measured, points), model.predict(32)]:
        assert share.efficiency + share.exposed + share.wait + share.slower == pytest.approx(1)
    assert model.measured(points[0]).efficiency == 1


def test_epochs_of_data_parallel_and_of_processes() -> None:
    """L01: 27 s alone, 24 s on two devices by threads is 56 %; 18 s by processes is 75 %."""
    alone = Point(world_size=1, step_ns=27, samples_per_step=100)
    for took, percent in ((24, 56), (18, 75)):
        two = Point(world_size=2, step_ns=took, samples_per_step=100)
        assert round(100 * modelled([alone, two]).measured(two).efficiency) == percent


def test_an_error_is_stated_only_where_a_size_was_predicted_from_smaller_ones() -> None:
    """Ranks that share two processors: four of them take twice as long, which no link explains."""
    points = [run(JOB, ranks) for ranks in (1, 2)]
    assert modelled(points).error is None
    assert modelled(points).predict(8).low is None
    four = run(JOB, 4)
    crowded = replace(four, step_ns=2 * four.step_ns)
    error = modelled([*points, crowded]).error
    assert error is not None
    assert error == pytest.approx(0.5, abs=0.05)
    assert fit_model(points[:1]) is None
