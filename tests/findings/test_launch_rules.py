"""WB201, WB202 and WB209: the host is slow, kernels are short, or Python is in the way."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.findings.loops import Loop, fired, looped, of
from workbench.findings.host_code import host_code
from workbench.findings.kernel_gaps import kernel_gaps
from workbench.findings.launch_bound import launch_bound
from workbench.findings.switching import fewer_launches
from workbench.run.facts import gather

US = 1_000


def small_kernels(loop: Loop, at: float) -> None:
    """20 operators of 45 µs, each with a call of 10 µs and a kernel of 8 µs; then idle 42 µs."""
    for each in range(20):
        start = at + 50 * each
        loop.trace.op("aten::mul", start, 45)
        loop.launch("mul_kernel", call=(start + 30, 10), kernel=(start + 42, 8))


def long_kernels(loop: Loop, at: float) -> None:
    """The same host, but kernels of 50 µs: each call meets a device that still works."""
    for each in range(20):
        start = at + 50 * each
        loop.trace.op("aten::mul", start, 45)
        loop.launch("mul_kernel", call=(start + 30, 10), kernel=(start + 42, 50))


def one_graph(loop: Loop, at: float) -> None:
    """20 kernels of one graph launch, then the host runs one operator for the rest of the step."""
    loop.trace.op("aten::mul", at, 995)
    loop.launch("graph_kernel_0", call=(at + 5, 10), kernel=(at + 20, 8))
    loop.trace.events[-2]["name"] = "cudaGraphLaunch"
    for each in range(1, 20):
        correlation = loop.trace.events[-1]["args"]["correlation"]
        loop.trace.kernel(f"graph_kernel_{each}", at + 20 + 10 * each, 8, correlation=correlation)


def test_small_kernels_behind_an_empty_queue_are_launch_bound(tmp_path: Path) -> None:
    """Of every 50 µs the device works 8: 84 % is lost, and without it a step takes 160 of 1000."""
    finding = fired(looped(small_kernels, 1000).run(tmp_path), "WB201")
    assert finding.severity == "critical"
    assert finding.share_of_window == pytest.approx(0.84)
    assert finding.saving_ns_per_step_at_most == pytest.approx(840 * US)
    assert finding.speedup_at_most == pytest.approx(1000 / 160)
    assert finding.evidence["empty_queue_share"] == 1.0
    assert finding.evidence["short_kernel_share"] == 1.0
    assert "torch.compile" in finding.advice


def test_a_queue_that_never_runs_dry_is_no_launch_bound_loop(tmp_path: Path) -> None:
    assert of(looped(long_kernels, 1000).run(tmp_path), "WB201") is None


def test_a_graph_is_one_launch_and_never_launch_bound(tmp_path: Path) -> None:
    run = looped(one_graph, 1000).run(tmp_path)
    assert gather(run.ranks[0], None).devices[0].launches_per_step == 1
    assert of(run, "WB201") is None


@pytest.mark.parametrize(("steps", "severity"), [(21, "critical"), (20, "warning"), (1, "info")])
def test_few_steps_lower_the_grade(tmp_path: Path, steps: int, severity: str) -> None:
    """21 steps have 20 times; a single step has none, and its window stands in."""
    run = looped(small_kernels, 1000, steps=steps).run(tmp_path)
    assert fired(run, "WB201").severity == severity


def test_the_step_of_record_caps_what_the_profiler_inflates(tmp_path: Path) -> None:
    """Without the profiler a step takes 400 µs, of which the device works 160: 240 can go."""
    run = looped(small_kernels, 1000).run(tmp_path)
    facts = replace(gather(run.ranks[0], None), step_ns=(400 * US,) * 20)
    finding = launch_bound(facts)
    assert finding is not None
    assert finding.saving_ns_per_step_at_most == pytest.approx(240 * US, rel=0.01)
    assert finding.speedup_at_most == pytest.approx(400 / 160, rel=0.01)


def test_a_replayed_bound_goes_before_the_pieces_of_one_cause(tmp_path: Path) -> None:
    """400 µs of idle time are host code; the replayed step says that 300 can go."""
    facts = gather(looped(python_between, 1000).run(tmp_path).ranks[0], None)
    finding = host_code(replace(facts, bounds_ns={"host_other": 300.0 * US}))
    assert finding is not None
    assert finding.saving_ns_per_step_at_most == pytest.approx(300 * US)


def spaced(gap: float) -> Loop:
    """20 kernels of 40 µs, all launched within 20 µs, with the same space between any two."""
    length = 20 * (40 + gap)

    def body(loop: Loop, at: float) -> None:
        for each in range(20):
            start = at + 30 + each * (40 + gap)
            loop.launch("add_kernel", call=(at + each, 1), kernel=(start, 40))

    return looped(body, length)


def test_space_between_queued_kernels_is_told_with_its_size(tmp_path: Path) -> None:
    """5 of 45 µs: 11 %; 20 gaps a step, 100 µs of 900.

    The host begins a step every 900 µs whatever the device does, so the replayed steps save less,
    and a saving of 1 % is no warning.
    """
    run = spaced(5).run(tmp_path)
    finding = fired(run, "WB202")
    assert finding.severity == "info"
    assert finding.share_of_window == pytest.approx(5 / 45)
    assert finding.evidence["median_gap_us"] == 5
    assert (finding.saving_ns_per_step_at_most or 0) < 10 * US
    pieces = kernel_gaps(replace(gather(run.ranks[0], None), bounds_ns=None))
    assert pieces is not None
    assert pieces.saving_ns_per_step_at_most == pytest.approx(100 * US)
    assert pieces.severity == "warning", "11 % and 21 steps, as far as the pieces alone can tell"


@pytest.mark.parametrize("gap", [1, 60], ids=["2.4 percent", "another stream's wait"])
def test_spacing_that_is_normal_or_is_none_is_silent(tmp_path: Path, gap: float) -> None:
    assert of(spaced(gap).run(tmp_path), "WB202") is None


def graph_of_gaps(loop: Loop, at: float) -> None:
    """20 kernels of 40 µs with 10 µs between, all brought by one graph launch."""
    loop.trace.op("aten::mm", at, 20)
    kernels = [(at + 12 + 50 * each, 40) for each in range(20)]
    loop.launch("gemm", call=(at + 5, 5), kernel=kernels[0])
    loop.trace.events[-2]["name"] = "cudaGraphLaunch"
    correlation = loop.trace.events[-1]["args"]["correlation"]
    for start, length in kernels[1:]:
        loop.trace.kernel("gemm", start, length, correlation=correlation)


def test_gaps_inside_graphs_do_not_get_graphs_as_advice(tmp_path: Path) -> None:
    """19 gaps of 10 µs in 1000 are 19 %; the last to the next step's launch is another's."""
    finding = fired(looped(graph_of_gaps, 1000).run(tmp_path), "WB202")
    assert finding.share_of_window == pytest.approx(0.19, abs=0.012)
    assert finding.evidence["inside_graphs_share"] > 0.9
    assert "inside CUDA graphs already" in finding.advice
    assert "reduce-overhead" not in finding.advice
    assert "reduce-overhead" in fired(spaced(5).run(tmp_path), "WB202").advice


def python_between(loop: Loop, at: float, kernel: float = 588) -> None:
    """A kernel up to 600 µs, and a range of the user's own up to the end of the step."""
    loop.trace.op("aten::mm", at, 20)
    loop.launch("gemm", call=(at + 5, 5), kernel=(at + 12, kernel))
    loop.trace.range("log metrics", at + 600, 400)


def test_host_code_outside_operators_is_told_with_its_range(tmp_path: Path) -> None:
    """The device idles from 600 to 1012; of that 400 belong to the range behind the kernel."""
    finding = fired(looped(python_between, 1000).run(tmp_path), "WB209")
    assert finding.share_of_window == pytest.approx(0.4)
    assert "log metrics" in finding.title
    assert "with_stack=True" in finding.advice
    assert not finding.evidence["stacks_recorded"]


def test_host_code_that_the_device_hides_is_silent(tmp_path: Path) -> None:
    def hidden(loop: Loop, at: float) -> None:
        python_between(loop, at, kernel=985)

    assert of(looped(hidden, 1000).run(tmp_path), "WB209") is None


def test_one_long_pause_a_step_is_told_although_the_queue_is_full_otherwise(tmp_path: Path) -> None:
    """Of 20 launches a step one meets an empty queue: the one behind 600 µs of sleep.

    The device works 410 of 1000 µs, from 610 to 1020 of each step.
    """

    def sleeping(loop: Loop, at: float) -> None:
        loop.trace.range("sleep", at, 600)
        for number in range(20):
            call = at + 600 + 8 * number
            loop.launch("gemm", call=(call, 5), kernel=(at + 610 + 20.5 * number, 20.5))

    finding = fired(looped(sleeping, 1000).run(tmp_path), "WB209")
    assert finding.evidence["empty_queue_share"] == pytest.approx(0.05)
    assert finding.share_of_window == pytest.approx(0.58, abs=0.01), "from 20 to 600"
    assert "sleep" in finding.title


def test_a_device_that_waits_beside_a_busier_one_is_no_critical_loss(tmp_path: Path) -> None:
    """Two devices in one process: 970 and 300 µs of work a step; only 30 can go."""

    def uneven(loop: Loop, at: float) -> None:
        loop.launch("gemm", call=(at + 5, 5), kernel=(at + 20, 970))
        loop.trace.launched(
            "gemm",
            call=(at + 15, 5),
            kernel=(at + 30, 300),
            correlation=100_000 + int(at),
            device=1,
        )

    finding = fired(looped(uneven, 1000).run(tmp_path), "WB209")
    assert finding.device == 1
    assert finding.share_of_window == pytest.approx(0.685), "700 less the 15 of the launch"
    assert (finding.saving_ns_per_step_at_most or 0) <= 30 * US
    assert finding.severity == "info"


def test_a_launch_bound_loop_is_not_blamed_on_python(tmp_path: Path) -> None:
    assert of(looped(small_kernels, 1000).run(tmp_path), "WB209") is None


def test_voided_causes_silence_every_rule_of_the_host(tmp_path: Path) -> None:
    """One launch took 500 ms to show: the device was busy with something unrecorded."""
    loop = looped(small_kernels, 1000)
    loop.launch("late", call=(22_000, 5), kernel=(522_000, 10))
    codes = [finding.code for finding in loop.run(tmp_path).findings]
    assert codes == ["WB901"]


def compiled_kernels(loop: Loop, at: float) -> None:
    """The same, called by code that torch.compile made."""
    loop.trace.op("Torch-Compiled Region: 0/0", at, 995)
    small_kernels(loop, at)


def test_what_is_compiled_already_is_not_to_be_compiled(tmp_path: Path) -> None:
    """The trace alone shows it, as of an inference server that somebody else recorded."""
    finding = fired(looped(compiled_kernels, 1000).run(tmp_path), "WB201")
    assert "run compiled already" in finding.advice
    assert "torch.compile(model)" not in finding.advice


def test_a_model_that_its_owner_compiled_gets_no_switch_to_compile_it(tmp_path: Path) -> None:
    seen = gather(looped(compiled_kernels, 1000).run(tmp_path).ranks[0], None)
    eager = gather(looped(small_kernels, 1000).run(tmp_path).ranks[0], None)
    setting = {"compile": False}
    assert fewer_launches(replace(seen, effective=setting)) is None
    assert fewer_launches(replace(eager, effective=setting)) == {"compile": True}


def three_ranges(loop: Loop, at: float) -> None:
    """Behind the kernel three ranges of the model's, 400 µs together, none with half of them."""
    loop.trace.op("aten::mm", at, 20)
    loop.launch("gemm", call=(at + 5, 5), kernel=(at + 12, 588))
    loop.trace.range("attention", at + 600, 160)
    loop.trace.range("norm", at + 760, 120)
    loop.trace.range("projection", at + 880, 120)


def test_a_place_with_less_than_half_has_not_most_of_it(tmp_path: Path) -> None:
    """160 of 400 µs: 40 %."""
    finding = fired(looped(three_ranges, 1000).run(tmp_path), "WB209")
    assert "40 % of it in attention" in finding.title
    assert "most of it" not in finding.title
    assert "The model's own Python" in finding.advice
