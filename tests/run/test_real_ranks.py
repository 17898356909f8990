"""Real traces of several ranks: who waits for whom."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import pytest

from workbench.analysis.device_time import DeviceTime
from workbench.run.rank import RankAnalysis
from workbench.run.run import Run
from workbench.trace import read

pytestmark = [pytest.mark.slow, pytest.mark.traces]

H100 = "KellerJordan__modded-nanogpt/*rank*"
LONG = "pytorch__torchrec/*sst_long_a2a*"
RESNET = "pytorch__torchrec/*log__resnet18*"


@lru_cache(maxsize=1)
def opened(root: Path, pattern: str) -> Run:
    """The ranks whose file names fit, read without a cache beside them."""
    files = sorted(root.glob(pattern))
    ranks = [_rank(path) for path in files]
    ranks.sort(key=lambda each: each.rank or 0)
    return Run(name=pattern, ranks=ranks, traces=files)


def _rank(path: Path) -> RankAnalysis:
    return RankAnalysis(source=path.name, rank=None, read=lambda: read(path))


def waited_ms(run: Run) -> Sequence[float]:
    """Per rank, all waiting in the recording: matched length minus transfer."""
    assert run.job is not None
    sums = []
    for part, transfer in zip(run.job.parts, run.job.transfers, strict=True):
        assert part.collectives is not None
        length = part.collectives.end - part.collectives.start
        sums.append(float((length - transfer)[transfer >= 0].sum()) / 1e6)
    return sums


@pytest.mark.parametrize("pattern", [H100, LONG, RESNET])
def test_every_breakdown_and_table_sums_exactly(traces_root: Path, pattern: str) -> None:
    run = opened(traces_root, pattern)
    for rank in run.ranks:
        parts, time = rank.breakdown(_device(rank)), _time(rank)
        assert sum(ns or 0 for ns in parts.values()) == time.range.length
        table = rank.communication
        assert table is not None
        assert table["total_ns"].sum() == time.communication
        assert table["exposed_ns"].sum() == time.exposed_communication
        assert (table["wait_ns"] + table["transfer_ns"] == table["total_ns"]).all()


def _device(rank: RankAnalysis) -> int:
    return next(iter(rank.device_time))


def _time(rank: RankAnalysis) -> DeviceTime:
    return rank.device_time[_device(rank)]


def test_eight_h100_wait_for_rank_1(traces_root: Path) -> None:
    """By hand: of 48 to 57 ms of NCCL on the seven other ranks 31 to 39 are waiting.

    These are the collectives that all eight captures hold; some began a few calls earlier.
    """
    run = opened(traces_root, H100)
    job = run.job
    assert job is not None
    common = [members for members in job.matched.members if len(members) == 8]
    for position in (0, 2, 3, 4, 5, 6, 7):
        found, transfer = job.parts[position].collectives, job.transfers[position]
        assert found is not None
        calls = [members[position] for members in common]
        spent = (found.end - found.start)[calls].sum() / 1e6
        assert 48 <= round(spent) <= 57
        assert 31 <= round(spent - transfer[calls].sum() / 1e6) <= 39
    assert job.straggler is not None
    assert job.straggler.rank == 1
    assert job.straggler.phase == "host"


def test_what_eight_h100_do_not_tell_has_its_reason(traces_root: Path) -> None:
    """Four steps are too few for an outlier, and no stack was recorded that would hold a module."""
    run = opened(traces_root, H100)
    assert run.modules is None
    assert run.outliers is None
    assert {"modules", "outliers"} <= set(run.summary.not_measured)
    table = run.imbalance
    assert table is not None
    parts = table.drop(columns=["rank", "step_ns"]).sum(axis=1)
    assert (table["transfer_ns"].between(3.2e6, 3.3e6)).all(), "the same collectives on each"
    assert (parts < 1.05 * table["step_ns"]).all(), "hidden waiting aside, parts of a step"


def test_programmatic_launches_of_the_h100_void_nothing(traces_root: Path) -> None:
    run = opened(traces_root, H100)
    assert [rank.trust.violations for rank in run.ranks] == [()] * 8


def test_the_clocks_of_one_machine_agree_to_microseconds(traces_root: Path) -> None:
    """All eight ranks ran on one machine, so base times need almost no correction."""
    run = opened(traces_root, H100)
    assert run.job is not None
    assert run.job.clock.aligned
    assert all(abs(ns or 0) < 10_000 for ns in run.job.clock.correction_ns)


def test_three_ranks_wait_three_seconds_in_an_exchange_for_rank_2(traces_root: Path) -> None:
    """Rank 2's host sleeps for three seconds: its own GPU idles, the others' run NCCL."""
    run = opened(traces_root, LONG)
    assert run.job is not None
    late = run.ranks[2]
    idle = late.recorded_time[_device(late)].idle / 1e6
    assert 3000 < idle < 3300
    waited = waited_ms(run)
    assert all(3000 < waited[i] < 3300 for i in (0, 1, 3))
    assert waited[2] < 50
    assert run.job.straggler is not None
    assert (run.job.straggler.rank, run.job.straggler.phase) == (2, "host")


def test_two_ranks_of_resnet18_differ_by_too_little_to_blame_one(traces_root: Path) -> None:
    """Rank 0 waits 7.5 ms in three steps of 43: half of that is 2.9 % of a step."""
    run = opened(traces_root, RESNET)
    assert run.job is not None
    first, second = waited_ms(run)
    assert 7 < first < 8
    assert second == 0
    assert run.job.straggler is None
