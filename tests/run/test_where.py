"""Where two Runs differ: traces written by hand compared in full, and sides that lack much."""

from collections.abc import Callable
from pathlib import Path

import pytest

import workbench as wb
from tests.analysis.difference.pairs import Call, loop
from tests.analysis.jobs import write_job
from tests.kineto import Kineto
from tests.run.test_compare import measured
from workbench.run.compare import Comparison
from workbench.run.compare_view import FIGURES
from workbench.run.where import _changed

GEMM = "ampere_sgemm_128x64_nn"
FIVE = [100, 104, 98, 102, 101]


def compared(folder: Path, first: Kineto, second: Kineto) -> Comparison:
    one, other = first.write(folder / "a.json"), second.write(folder / "b.json")
    return wb.compare(wb.open(one), wb.open(other))


def test_everything_is_the_same_in_a_trace_and_itself(tmp_path: Path) -> None:
    made = loop(Call(GEMM, FIVE), Call("softmax_warp_forward", FIVE))
    found = compared(tmp_path, made, made)
    assert found.differences == ()
    for table in (found.breakdown, found.families, found.kernels, found.operators):
        assert table is not None
        assert set(table["change"]) == {"same"}
        assert (table["difference_ns"].dropna() == 0).all()
    for name in ("breakdown", "families", "kernels", "operators"):
        assert found.figure(name).title.startswith("No ")


def test_the_parts_of_a_step_sum_to_the_change_of_the_step(tmp_path: Path) -> None:
    """Steps of 1000 µs each in both: 51 µs of compute became idle time."""
    found = compared(tmp_path, loop(Call(GEMM, FIVE)), loop(Call(GEMM, [t / 2 for t in FIVE])))
    table, under = found.breakdown, found.profiled
    assert table is not None
    assert under is not None
    longer = sum(under.second_ns) / len(under.second_ns) - sum(under.first_ns) / len(under.first_ns)
    assert table["difference_ns"].sum() == pytest.approx(longer)
    assert table.set_index("name").loc["compute", "change"] == "faster"


def test_the_document_holds_every_table_in_microseconds(tmp_path: Path) -> None:
    found = compared(tmp_path, loop(Call(GEMM, FIVE)), loop(Call(GEMM, [t / 2 for t in FIVE])))
    document = found.to_json()
    assert document["schema"] == "workbench.compare/1"
    where = document["where"][0]
    assert where["per"] == "step"
    assert where["steps"] == {"first": 5, "second": 5}
    kernel = where["kernels"][0]
    assert (kernel["name"], kernel["change"]) == (GEMM, "faster")
    assert (kernel["first_us"], kernel["second_us"]) == (101, 50.5)
    assert {row["name"] for row in where["breakdown"]} >= {"compute", "launch"}


def test_two_measured_runs_have_the_verdict_and_the_tables(tmp_path: Path) -> None:
    first = wb.open(measured(tmp_path, "a", step_ms=100))
    second = wb.open(measured(tmp_path, "b", step_ms=50))
    found = first.compare(second)
    assert found.verdict == "faster"
    assert found.kernels is not None
    assert found.charts[0] == "steps"
    text = repr(found)
    assert text.index("b is faster than a") < text.index("Kernels")
    assert max(map(len, text.splitlines())) <= 80


def test_other_batch_sizes_are_compared_by_the_sample(tmp_path: Path) -> None:
    """The same trace on both sides: for twice the samples it is half the time a sample."""
    first = wb.open(measured(tmp_path, "a", step_ms=100, samples=32))
    second = wb.open(measured(tmp_path, "b", step_ms=100, samples=64))
    table = first.compare(second).kernels
    assert table is not None
    assert (table["second_ns"] * 2 == table["first_ns"]).all()


def test_ranks_are_compared_with_their_like(tmp_path: Path) -> None:
    """Rank 1 computes for 300 µs instead of 200; the first Run has one rank more."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    write_job(first, [200, 200, 200], steps=4)
    write_job(second, [200, 300], steps=4)
    found = wb.compare(wb.open(first), wb.open(second))
    table = found.kernels
    assert table is not None
    gemm = table[table["name"] == "gemm"].set_index("rank")
    assert gemm["difference_ns"].to_dict() == {0: 0, 1: 100_000}
    assert "2 ranks are compared with their like" in found.notes[1]
    assert "first has 1 more" in found.notes[2]
    assert [each["rank"] for each in found.to_json()["where"]] == [0, 1]


def test_ranks_without_their_like_are_compared_and_said(tmp_path: Path) -> None:
    runs = []
    for name, numbers in (("first", (0, 1)), ("second", (2, 3))):
        folder = tmp_path / name
        folder.mkdir()
        whole = write_job(folder, [200, 200, 200, 200], steps=3)
        for number in {0, 1, 2, 3} - set(numbers):
            (whole / f"rank{number}.trace.json").unlink()
        runs.append(wb.open(folder))
    assert any("no rank in common" in note for note in wb.compare(*runs).notes)


def test_one_process_against_ranks_is_said_as_what_it_is(tmp_path: Path) -> None:
    """The same loop with one process and with two: nobody asks which ranks they share."""
    folder = tmp_path / "spread"
    folder.mkdir()
    write_job(folder, [200, 300], steps=3)
    trace = Kineto(gpu=True)
    trace.step(1, 0, 100)
    trace.step(2, 100, 100)
    alone = wb.open(trace.write(tmp_path / "one.json"))
    for pair in ((alone, wb.open(folder)), (wb.open(folder), alone)):
        told = [note for note in wb.compare(*pair).notes if "is one process" in note]
        assert len(told) == 1
        assert told[0].startswith("one.json is one process and spread has 2 ranks")


def test_another_makers_kernels_are_compared_by_family(tmp_path: Path) -> None:
    first, second = loop(Call(GEMM, FIVE)), loop(Call("Cijk_Ailk_Bljk_SB_MT64x64", FIVE))
    second.header["deviceProperties"] = [{"id": 0, "name": "AMD Instinct MI300X"}]
    found = compared(tmp_path, first, second)
    families, kernels = found.families, found.kernels
    assert families is not None
    assert kernels is not None
    assert families[["name", "change"]].to_numpy().tolist() == [["gemm", "same"]]
    assert sorted(kernels["change"]) == ["added", "removed"]
    assert any("compare by family" in note for note in found.notes)
    assert "families" in found.charts


def test_a_slower_clock_is_said_before_every_kernel_is_blamed(tmp_path: Path) -> None:
    """Six kernels of different families all take 8 % longer."""
    kinds = ("sgemm_a", "softmax_b", "add_functor", "batch_norm_c", "maxpool_d", "dropout_e")
    made = [
        loop(*(Call(name, [longer * us for us in FIVE]) for name in kinds))
        for longer in (1.0, 1.08)
    ]
    assert any("takes 8.0 % longer a call" in note for note in compared(tmp_path, *made).notes)


def test_one_kernel_that_is_slower_is_no_slower_clock(tmp_path: Path) -> None:
    kinds = ("sgemm_a", "softmax_b", "add_functor", "batch_norm_c", "maxpool_d")
    first = [Call(name, FIVE) for name in kinds]
    second = [*first[:-1], Call("maxpool_d", [2 * us for us in FIVE])]
    assert len(compared(tmp_path, loop(*first), loop(*second)).notes) == 1, "step times only"


def cpu_only() -> Kineto:
    made = Kineto()
    for number in range(3):
        made.step(number, 1000 * number, 1000)
        made.op("aten::mm", 1000 * number + 10, 500)
    return made


def not_recorded() -> Kineto:
    """A GPU in the header, launches, and no kernel."""
    made = loop(Call(GEMM, FIVE))
    made.events = [event for event in made.events if event["cat"] != "kernel"]
    return made


def no_steps() -> Kineto:
    made = loop(Call(GEMM, FIVE))
    made.events = [event for event in made.events if "ProfilerStep" not in event["name"]]
    return made


def one_range() -> Kineto:
    made = Kineto()
    made.event("something", "custom", 0, 10)
    return made


def device_only() -> Kineto:
    made = loop(Call(GEMM, FIVE))
    made.events = [event for event in made.events if event["cat"] == "kernel"]
    return made


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        (cpu_only, "b.json: the trace holds no device work (CPU only)"),
        (not_recorded, "a device is present but none of its work was recorded"),
        (no_steps, "Whole recordings are compared, not steps (a.json has 5 steps, b.json marks"),
        (one_range, "no operator of the framework"),
        (device_only, "b.json: no operator of the framework"),
    ],
)
def test_a_side_that_lacks_something_is_one_clear_sentence(
    tmp_path: Path, odd: Callable[[], Kineto], said: str
) -> None:
    found = compared(tmp_path, loop(Call(GEMM, FIVE)), odd())
    assert any(said in note for note in found.notes), found.notes
    assert found.verdict == "cannot_tell"
    assert max(map(len, repr(found).splitlines())) <= 80
    assert "text/html" in found._repr_mimebundle_()
    found.to_json()
    for name in FIGURES:
        assert found.figure(name).title


def test_two_cpu_traces_are_compared_by_parts_and_operators(tmp_path: Path) -> None:
    """Operators of 500 µs become 250: half of each step moves to other host code."""
    second = cpu_only()
    for event in second.events:
        event["dur"] = 250 if event["name"] == "aten::mm" else event["dur"]
    found = compared(tmp_path, cpu_only(), second)
    assert found.kernels is None
    assert found.breakdown is not None
    assert found.operators is not None
    parts = found.breakdown.set_index("name")["difference_ns"]
    assert parts["other_operators"] == -250_000
    assert parts["host_other"] == 250_000
    assert found.operators[["name", "by", "change"]].to_numpy().tolist() == [
        ["aten::mm", "host", "faster"]
    ]
    assert found.charts == ("breakdown", "operators")


def test_another_format_is_compared_too(tmp_path: Path) -> None:
    """A lane file of another tool beside a Kineto trace: what it lacks is said."""
    lanes = tmp_path / "lanes.json"
    lanes.write_text('[{"ph":"X","name":"mm","cat":"op","pid":1,"tid":1,"ts":0,"dur":5}]')
    first = wb.open(loop(Call(GEMM, FIVE)).write(tmp_path / "a.json"))
    found = wb.compare(first, wb.open(lanes))
    assert found.verdict == "cannot_tell"
    assert found.notes
    assert repr(found)


@pytest.mark.parametrize(
    ("shift", "said"),
    [
        (0.08, "8.0 % longer"),
        (-0.08, "8.0 % shorter"),
        (1.0, "2.00 times as long"),
        (999.0, "1\u2009000 times as long"),
        (-0.75, "0.25 times as long"),
    ],
)
def test_a_large_change_of_every_kernel_reads_as_a_factor(shift: float, said: str) -> None:
    """A change of 999 more is 1000 times, not 99900 %; three quarters less is a quarter."""
    assert _changed(shift) == said
