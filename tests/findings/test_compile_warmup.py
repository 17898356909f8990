"""WB206: compiling before the steady steps, and from which step on it pays."""

from pathlib import Path

import pytest

import workbench as wb
from tests.findings.loops import fired, of
from tests.kineto import Kineto
from workbench.findings import compile_break_even
from workbench.findings.compile_warmup import compile_warmup
from workbench.findings.finding import Facts
from workbench.run.run import Run

MS = 1_000_000


def compiled(tmp_path: Path, *compile_ms: int, steps: int = 8) -> Run:
    """Steps of 10 ms on the CPU; the first ones compile for so many milliseconds more."""
    trace, at = Kineto(), 0.0
    for number in range(steps):
        extra = 1000.0 * (compile_ms[number] if number < len(compile_ms) else 0)
        trace.step(number, at, extra + 10_000)
        if extra:
            trace.op("entire_frame_compile (dynamo_timed)", at, extra)
        trace.op("aten::mm", at + extra, 9_000)
        at += extra + 10_000
    return wb.open(trace.write(tmp_path / "t.json"))


def test_a_long_compilation_is_told_and_its_steps_do_not_count(tmp_path: Path) -> None:
    """300 and 100 ms of compiling before steps of 10: as long as 40 of them."""
    run = compiled(tmp_path, 300, 100)
    finding = fired(run, "WB206")
    assert (finding.verdict, finding.severity) == ("cannot_tell", "info")
    assert "as long as 40 steps" in finding.title
    assert finding.evidence["compile_us"] == 400_000
    assert finding.evidence["first_steps_us"] == [310_000, 110_000]
    assert finding.evidence["steady_step_us"] == 10_000
    steps = run.ranks[0].steps
    assert steps is not None
    assert steps.warmup == 2, "neither is like the others"
    assert not repr(run).splitlines()[1].startswith("torch.compile"), "no limit of the loop"


def test_compiling_first_steps_do_not_count_where_too_few_follow_for_a_change_test(
    tmp_path: Path,
) -> None:
    """Of three steps no test tells a change; that the first one compiles, the trace says."""
    steps = compiled(tmp_path, 300, steps=3).ranks[0].steps
    assert steps is not None
    assert (steps.warmup, steps.time_ns.tolist()) == (1, [310 * MS, 10 * MS, 10 * MS])


@pytest.mark.parametrize(
    "compile_ms", [(), (60,), (40, 40, 40, 40, 40)], ids=["nothing", "short", "all the time"]
)
def test_what_is_no_long_warmup_is_silent(tmp_path: Path, compile_ms: tuple[int, ...]) -> None:
    """60 ms are six steps; and five compiling ones of eight are a loop that never settles."""
    assert of(compiled(tmp_path, *compile_ms), "WB206") is None


def recorded(seconds: float) -> Facts:
    told = {"graphs": 1, "graph_breaks": 0, "recompiles": 0, "limit_reached": 0}
    return Facts(compilation=told | {"seconds": seconds}, step_ns=(50 * MS,) * 20)


def test_what_torch_counted_is_told_where_the_trace_begins_later() -> None:
    """12 s before steps of 50 ms: 240 of them."""
    finding = compile_warmup(recorded(12.0))
    assert finding is not None
    assert "as long as 240 steps" in finding.title
    assert compile_warmup(recorded(0.0)) is None


@pytest.mark.parametrize("swapped", [False, True])
def test_the_break_even_step_is_compile_time_over_saving(swapped: bool) -> None:
    """12 s for 20 ms a step: from step 600 on, whichever Run is named first."""
    one, other = (recorded(12.0), Facts()) if swapped else (Facts(), recorded(12.0))
    finding = compile_break_even(
        one, other, saved_ns=-20.0 * MS if swapped else 20.0 * MS, per="step"
    )
    assert finding is not None
    assert finding.evidence["break_even_step"] == pytest.approx(600)
    assert "pays from step 600 on" in finding.title


def test_a_slower_compiled_step_never_pays_and_noise_cannot_tell() -> None:
    never = compile_break_even(Facts(), recorded(12.0), saved_ns=-3.0 * MS, per="step")
    unknown = compile_break_even(Facts(), recorded(12.0), saved_ns=None, per="step")
    assert never is not None
    assert unknown is not None
    assert ("never pays" in never.title, never.verdict) == (True, "yes")
    assert ("cannot be told" in unknown.title, unknown.verdict) == (True, "cannot_tell")


def test_two_runs_that_both_compiled_or_both_did_not_break_even_nowhere() -> None:
    for both in (Facts(), recorded(12.0)):
        assert compile_break_even(both, both, saved_ns=20.0 * MS, per="step") is None
