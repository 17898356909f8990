"""Several ranks as one Run: wait and transfer, the straggler, one clock, ranks that are missing."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import workbench as wb
from tests.analysis.jobs import ALL_REDUCE, BASE, STEP, job_trace, write_job
from tests.analysis.traces import US
from tests.kineto import Kineto
from workbench.run import job as job_module
from workbench.run.run import Run
from workbench.run.source import open_runs
from workbench.trace.table import Trace

pytestmark = pytest.mark.slow


FOUR = (400, 400, 600, 400)
"""Rank 2 computes 200 us longer: the others wait 200 and everybody transfers 100."""


def codes(run: Run) -> list[str]:
    return [violation.code for violation in run.trust.violations]


def straggler_of(run: Run) -> dict[str, object] | None:
    return run.summary["straggler"]


def test_four_ranks_wait_for_the_one_that_computes_longer(tmp_path: Path) -> None:
    run = wb.open(write_job(tmp_path, FOUR))
    for rank in run.ranks:
        parts = rank.breakdown(0)
        late = rank.rank == 2
        assert parts["exposed_communication_wait"] == (0 if late else 3 * 200 * US)
        assert parts["exposed_communication_transfer"] == 3 * 100 * US
        assert rank.window is not None
        assert sum(ns or 0 for ns in parts.values()) == rank.window.length
    assert straggler_of(run) == {
        "rank": 2,
        "wait_deficit_us_per_step": pytest.approx(200),
        "phase": "compute",
    }


def test_the_table_divides_all_communication_and_gives_the_true_bandwidth(tmp_path: Path) -> None:
    """4 MB x 2 x 3/4 in a transfer of 100 us are 60 GB/s on every rank, however long it waits."""
    table = wb.open(write_job(tmp_path, FOUR)).communication
    assert table is not None
    assert table["rank"].tolist() == [0, 1, 2, 3]
    assert (table["wait_ns"] + table["transfer_ns"] == table["total_ns"]).all()
    assert table["wait_ns"].tolist() == [600 * US, 600 * US, 0, 600 * US]
    assert table["bus_gb_s"].tolist() == pytest.approx([60] * 4)


def test_a_rank_whose_host_comes_late_is_named_with_its_host(tmp_path: Path) -> None:
    """Same compute; rank 1 launches 150 us later, and its device is idle for it."""
    run = wb.open(write_job(tmp_path, (400, 400), host=(0, 150)))
    found = straggler_of(run)
    assert found is not None
    assert (found["rank"], found["phase"]) == (1, "host")
    (finding,) = [f for f in run.findings if f.code == "WB402"]
    assert finding.rank == 1
    assert "host code" in finding.title
    # Half of it is the deficit of two ranks; a rank that comes in time saves all 150.
    assert found["wait_deficit_us_per_step"] == pytest.approx(75)
    assert finding.saving_ns_per_step_at_most == pytest.approx(150 * US)
    assert finding.evidence["others_wait_us_per_step"] == pytest.approx(150)
    assert "wait 150 µs of each step for rank 1" in run.figure("ranks").title


def test_ranks_that_come_together_have_no_straggler(tmp_path: Path) -> None:
    run = wb.open(write_job(tmp_path, (400, 400)))
    assert straggler_of(run) is None
    assert "WB402" not in [f.code for f in run.findings]


def test_two_ranks_halve_the_deficit_so_a_small_delay_stays_silent(tmp_path: Path) -> None:
    """The median of a wait of 90 and none is 45 us of a step of 1000: under 5 %."""
    assert straggler_of(wb.open(write_job(tmp_path, (400, 490)))) is None


def test_one_rank_alone_blames_nobody(tmp_path: Path) -> None:
    trace = job_trace(0, FOUR).write(tmp_path / "rank0.trace.json")
    run = wb.open(trace)
    parts = run.ranks[0].breakdown(0)
    assert parts["exposed_communication_wait"] is None
    assert parts["exposed_communication_transfer"] == 3 * 300 * US
    (finding,) = [f for f in run.findings if f.code == "WB401"]
    assert finding.verdict == "cannot_tell"
    assert "straggler" not in run.summary.to_json()


def test_clocks_11_seconds_apart_change_no_rank_and_are_said(tmp_path: Path) -> None:
    plain, shifted = tmp_path / "plain", tmp_path / "shifted"
    for folder, shift in ((plain, 0), (shifted, 11_560_000_000)):
        folder.mkdir()
        job_trace(0, (400, 600)).write(folder / "rank0.json")
        job_trace(1, (400, 600), base_ns=BASE + shift).write(folder / "rank1.json")
    one, other = wb.open(plain), wb.open(shifted)
    assert codes(one) == []
    assert codes(other) == ["clock_bases"]
    assert "rank 1 by -11.56 s" in other.trust.violations[0].message
    assert other.trust.ok, "the collectives correct it"
    assert [r.breakdown(0) for r in one.ranks] == [r.breakdown(0) for r in other.ranks]


def test_without_a_collective_times_of_different_ranks_are_not_compared(tmp_path: Path) -> None:
    run = wb.open(write_job(tmp_path, (400, 600), communicates=False))
    assert codes(run) == ["clock_bases"]
    assert "instants of different ranks are not compared" in run.trust.violations[0].message
    assert run.trust.ok, "every rank's own numbers hold"
    assert straggler_of(run) is None


def test_a_missing_and_a_doubled_rank_are_said(tmp_path: Path) -> None:
    write_job(tmp_path, FOUR)
    (tmp_path / "rank3.trace.json").unlink()
    (tmp_path / "again.json").write_bytes((tmp_path / "rank0.trace.json").read_bytes())
    run = wb.open(tmp_path)
    assert codes(run) == ["duplicate_ranks", "missing_ranks"]
    assert "the same file again" in run.trust.violations[0].message
    assert "ranks 3" in run.trust.violations[1].message


def test_a_second_file_of_a_rank_changes_no_number_of_the_comparison(tmp_path: Path) -> None:
    """Rank 2 is late by 200 us; were its copy a fifth rank, the median of 200, 200, 0, 0, 200 held.

    Of 400, 600 and a copy of the late one it would not: the median of 200, 0 and 0 is none.
    """
    for name, lengths in (("four", FOUR), ("two", (400, 600))):
        folder = tmp_path / name
        folder.mkdir()
        write_job(folder, lengths)
        late = max(range(len(lengths)), key=lengths.__getitem__)
        plain = wb.open(folder)
        alone = straggler_of(plain)
        copied = (folder / f"rank{late}.trace.json").read_bytes()
        (folder / f"rank{late}.trace.json.copy.json").write_bytes(copied)
        run = wb.open(folder)
        assert codes(run) == ["duplicate_ranks"]
        assert straggler_of(run) == alone
        assert run.trust.ok


def test_two_files_of_one_rank_are_no_two_ranks(tmp_path: Path) -> None:
    """Neither waits for the other: that it waits for nobody would be no measurement."""
    write_job(tmp_path, FOUR)
    for rank in (1, 2, 3):
        (tmp_path / f"rank{rank}.trace.json").unlink()
    (tmp_path / "again.json").write_bytes((tmp_path / "rank0.trace.json").read_bytes())
    run = wb.open(tmp_path)
    assert [r.breakdown(0)["exposed_communication_wait"] for r in run.ranks] == [None]
    assert run.job is None


def test_what_several_ranks_show_is_looked_at_where_it_is_worst(tmp_path: Path) -> None:
    """A kernel of 700 us a step on three ranks and of 300 on rank 3: that one idles most."""
    for rank, length in enumerate((700, 700, 700, 300)):
        made = Kineto(gpu=True)
        made.header["distributedInfo"] = {"rank": rank, "world_size": 4}
        for step in range(4):
            at = 1000 * step
            made.step(step, at, 1000)
            made.launched("k", call=(at + 10, 5), kernel=(at + 20, length), correlation=step + 1)
        made.write(tmp_path / f"rank{rank}.json")
    run = wb.open(tmp_path)
    assert all(finding.rank is None for finding in run.findings)
    assert "On 4 ranks (most on rank 3)" in run.findings[0].title
    assert run.worst_rank == 3
    assert repr(run.part("parts")).startswith("Rank 3, ")


def test_the_line_at_the_top_is_of_the_rank_that_the_page_shows_first(tmp_path: Path) -> None:
    """Rank 2 computes 600 µs of its step and waits for nobody; the first rank computes 400."""
    run = wb.open(write_job(tmp_path, FOUR))
    line, shown = run.headline, run.part("parts").view.breakdowns[0]
    assert shown.label.startswith("Rank 2")
    assert line is not None
    assert line.of == "rank 2"
    assert line.parts[0] == ("compute", 600 * US)
    assert "wait for ranks" not in line.sentence
    assert line.total_ns == shown.total_ns / (shown.steps or 1)
    assert "WB402" in line.sentence


def test_two_jobs_in_one_folder_are_not_mixed(tmp_path: Path) -> None:
    """Beside the job of four ranks lie two of another one: no number of the four changes."""
    alone, mixed = tmp_path / "alone", tmp_path / "mixed"
    for folder in (alone, mixed):
        folder.mkdir()
        write_job(folder, FOUR)
    for rank in (0, 1):
        job_trace(rank, (400, 900)).write(mixed / f"other{rank}.json")
    one, other = wb.open(alone), wb.open(mixed)
    assert [rank.rank for rank in other.ranks] == [0, 1, 2, 3]
    assert codes(other) == ["several_jobs"]
    assert other.trust.ok
    assert straggler_of(other) == straggler_of(one)
    opened = [make() for _, make in open_runs([mixed])]
    assert [[rank.rank for rank in run.ranks] for run in opened] == [[0, 1, 2, 3], [0, 1]]
    assert [codes(run) for run in opened] == [[], []]
    assert [run.name for run in opened] == ["mixed, job 1 of 2", "mixed, job 2 of 2"]


def test_the_table_of_ranks_tells_waiting_from_moving_data(tmp_path: Path) -> None:
    """An all-reduce begins where a rank is ready and ends 100 us after the last: rank 2, 200 later.

    Both are those of one step.
    """
    table = wb.open(write_job(tmp_path, FOUR)).imbalance
    assert table is not None
    assert (table["wait_ns"] / 1000).tolist() == [200, 200, 0, 200]
    assert (table["transfer_ns"] / 1000).tolist() == [100] * 4


def test_of_many_ranks_no_trace_stays_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_module, "MOST_HELD", 2)
    held = wb.open(write_job(tmp_path, (400, 400, 600)))
    assert straggler_of(held) is not None
    large = {"trace", "launches", "evidence", "idle", "recorded_idle"}
    assert not any(large & set(vars(rank)) for rank in held.ranks)
    first = held.ranks[0]
    assert sum(ns or 0 for ns in first.breakdown(0).values()) == first.device_time[0].range.length
    assert "trace" not in vars(first), "sums are kept: asked for, they read nothing"
    assert held.kernels is not None, "asked again, it is read again"


def test_a_page_of_many_ranks_reads_each_trace_three_times_and_keeps_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the findings, for what all ranks tell together, and for every table at once."""
    monkeypatch.setattr(job_module, "MOST_HELD", 2)
    run = wb.open(write_job(tmp_path, (400, 400, 600)))
    reads = dict.fromkeys(range(3), 0)
    for position, rank in enumerate(run.ranks):
        rank.release()

        def counted(read: Callable[[], Trace] = rank._read, position: int = position) -> Trace:
            reads[position] += 1
            return read()

        monkeypatch.setattr(rank, "_read", counted)
    assert "Process groups" in repr(run.part("details"))
    assert max(reads.values()) <= 3, reads
    assert not any("trace" in vars(rank) for rank in run.ranks)


def test_an_uneven_exchange_waits_until_the_last_rank_has_come(tmp_path: Path) -> None:
    """Rank 0 exchanges from 100 to 900 and rank 1 from 600 to 850: 0 waits 500, 1 nothing.

    The all-reduces at 950 tie the clocks.
    """
    for rank, (start, end) in enumerate(((100, 900), (600, 850))):
        made = Kineto(gpu=True)
        made.header["distributedInfo"] = {"rank": rank, "world_size": 2}
        for step in range(2):
            at = step * STEP
            made.step(step, at, STEP)
            made.range("nccl:all_to_all", at + 10, 20)
            made.launched(
                "ncclDevKernel_SendRecv()",
                call=(at + 15, 5),
                kernel=(at + start, end - start),
                correlation=10 * step + 1,
                stream=20,
            )
            made.launched(
                ALL_REDUCE,
                call=(at + 40, 5),
                kernel=(at + 950, 20),
                correlation=10 * step + 2,
                stream=20,
            )
        made.write(tmp_path / f"rank{rank}.json")
    table = wb.open(tmp_path).communication
    assert table is not None
    exchanged = table[table["collective"] == "all_to_all"].set_index("rank")
    assert exchanged["wait_ns"].to_dict() == {0: 2 * 500 * US, 1: 0}
    assert exchanged["transfer_ns"].to_dict() == {0: 2 * 300 * US, 1: 2 * 250 * US}


def test_figures_name_the_late_rank_and_the_bandwidth(tmp_path: Path) -> None:
    run = wb.open(write_job(tmp_path, FOUR))
    ranks, exchanged = run.figure("ranks"), run.figure("communication")
    assert ranks.title == "The ranks wait 200 µs of each step for rank 2"
    assert exchanged.title.endswith("The median all-reduce reaches 60.0 GB/s")
    assert ranks.table is not None
    assert len(ranks.table.rows) == 4


def test_the_verdict_names_the_late_rank_once(tmp_path: Path) -> None:
    """The host is idle for 100 of 1000 µs a step, which no rule calls too much."""
    shown = repr(wb.open(write_job(tmp_path, (600, 600, 800, 600)))).splitlines()
    assert shown[1].startswith("Rank 2 is a straggler")


def test_beside_the_table_of_launches_nothing_as_long_as_the_trace_is_kept(tmp_path: Path) -> None:
    """Of 500 launches the calls and the queue are columns of 500 or 1,000: 45 MB of a gigabyte."""
    trace = Kineto(gpu=True)
    for number in range(500):
        at = 10 * number
        trace.launched("k", call=(at, 2), kernel=(at + 3, 4), correlation=number + 1)
    details = wb.open(trace.write(tmp_path / "t.json")).ranks[0].details
    assert details.launches is not None
    assert details.launches["calls"].tolist() == [500, 500]
    assert len(details.queues(0)[0].at) > 500, "made when it is asked for"
    kept = [value for name, value in vars(details).items() if name != "_rank"]
    assert max(longest(value) for value in kept) < 500


def longest(value: object) -> int:
    """Length of the longest column anywhere in a value."""
    if isinstance(value, np.ndarray):
        return len(value)
    if isinstance(value, pd.DataFrame):
        return len(value)
    inner = list(value.values()) if isinstance(value, dict) else []
    inner += list(value) if isinstance(value, tuple | list) else []
    inner += list(vars(value).values()) if hasattr(value, "__dict__") else []
    return max((longest(each) for each in inner), default=0)
