"""``wb.profile``: measured without the profiler, explained with it, everything put back."""

import getpass
import multiprocessing
import platform
import re
import statistics
import threading
import warnings
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import workbench as wb
from tests.profiling.loops import Slow, endless, loader, workload
from tests.recording.traces import names, steps
from workbench.errors import (
    ProfilerBusyError,
    RunError,
    SettingError,
    TimeLimitError,
    WorkloadError,
)

pytestmark = pytest.mark.slow


def trace_of(run: wb.Run) -> Path:
    assert run.folder is not None
    return run.folder / "rank0.trace.json.gz"


def record_of(run: wb.Run) -> Any:
    assert run.record is not None
    return run.record


def test_a_run_holds_two_unprofiled_blocks_and_a_window_between_them() -> None:
    run = wb.profile(workload(), steps=4)
    timings = record_of(run).timings
    assert timings.blocks[0] >= 5 + 4
    assert timings.blocks[1] == 4
    assert len(timings.step_ns) == len(timings.input_ns) == sum(timings.blocks)
    assert 5 <= timings.warmup < timings.blocks[0]
    assert len(timings.profiled_step_ns) == 4
    assert len(steps(trace_of(run))) == 4
    assert all(
        0 < wait < step for wait, step in zip(timings.input_ns, timings.step_ns, strict=True)
    )


def test_the_window_has_at_most_twenty_steps() -> None:
    assert len(steps(trace_of(wb.profile(workload(), steps=25)))) == 20


def test_the_trace_names_the_parts_of_a_step() -> None:
    recorded = names(trace_of(wb.profile(workload(), steps=3)))
    for part in ("workbench.input", "forward", "backward", "Optimizer.step#SGD.step"):
        assert recorded.count(part) == 3, part


def test_the_overhead_is_profiled_over_unprofiled() -> None:
    record = record_of(wb.profile(workload(), steps=5))
    timings = record.timings
    unprofiled = statistics.median(timings.step_ns[timings.warmup :])
    assert record.overhead_ratio == statistics.median(timings.profiled_step_ns) / unprofiled


def test_a_wait_for_input_is_measured_in_the_step_it_delays() -> None:
    """A batch of 4 samples of 5 ms each takes 20 ms to load and next to nothing to train."""
    data = torch.utils.data.DataLoader(Slow(64, 0.005), batch_size=4)
    timings = record_of(wb.profile(workload(data), steps=2)).timings
    steady = timings.input_ns[timings.warmup :]
    assert min(steady) >= 20e6
    shares = [w / s for w, s in zip(timings.input_ns, timings.step_ns, strict=True)]
    assert statistics.median(shares) > 0.5


def test_weights_and_random_states_are_as_before() -> None:
    work = workload()
    weights, state = work.model.weight.clone(), torch.get_rng_state()
    wb.profile(work, steps=3)
    assert torch.equal(work.model.weight, weights)
    assert torch.equal(torch.get_rng_state(), state)


def test_training_can_be_kept() -> None:
    work = workload()
    weights = work.model.weight.clone()
    wb.profile(work, steps=3, keep_training=True)
    assert not torch.equal(work.model.weight, weights)


def test_settings_and_what_was_in_force_are_stored() -> None:
    record = record_of(wb.profile(workload(), wb.Settings(batch_size=2), steps=2))
    assert record.settings == {"batch_size": 2}
    assert record.effective["batch_size"] == 2
    assert record.samples_per_step == 2


def test_the_tenth_run_works_as_the_first() -> None:
    work = workload()
    folders = [wb.profile(work, steps=2, name="mine").folder for _ in range(10)]
    assert [folder.name for folder in folders if folder] == [
        "mine",
        *(f"mine-{number}" for number in range(2, 11)),
    ]


def test_a_run_works_on_another_thread() -> None:
    runs: list[wb.Run] = []
    thread = threading.Thread(target=lambda: runs.append(wb.profile(workload(), steps=2)))
    thread.start()
    thread.join()
    assert len(steps(trace_of(runs[0]))) == 2


def test_workers_are_gone_afterwards() -> None:
    run = wb.profile(workload(loader(8, num_workers=2)), steps=2)
    assert record_of(run).effective["workers"] == 2


def test_a_short_loader_repeats_and_the_run_says_so() -> None:
    run = wb.profile(workload(loader(3)), steps=3)
    assert any("an epoch has 3 batches" in note for note in record_of(run).notes)


def test_data_without_an_end_works() -> None:
    wb.profile(workload(endless), steps=2)


def test_inference_is_profiled_too() -> None:
    run = wb.profile(wb.Workload(nn.Linear(4, 2), loader(4)), steps=2)
    assert "backward" not in names(trace_of(run))


@pytest.mark.parametrize("option", ["stacks", "memory", "shapes", "modules"])
def test_what_is_recorded_is_stored(option: str) -> None:
    run = wb.profile(workload(), steps=2, record=wb.Record(**{option: True}))
    assert record_of(run).record[option] is True


def test_nothing_names_the_user_the_machine_or_a_place(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    run = wb.profile(workload(), steps=2)
    assert run.folder is not None
    said = (run.folder / "run.json").read_text()
    words = re.findall(r"[\w.-]+", said)
    for secret in (str(tmp_path), str(Path.home()), "hunter2"):
        assert secret not in said
    assert platform.node() not in words
    assert getpass.getuser() not in words


def test_warnings_of_the_loop_are_stored_and_shown() -> None:
    def step(model: nn.Module, batch: Any) -> None:
        warnings.warn("slow path", UserWarning, stacklevel=2)
        model(batch[0])

    with pytest.warns(UserWarning, match="slow path"):
        run = wb.profile(workload(step=step), steps=2)
    assert record_of(run).warnings == ["UserWarning: slow path"]


def test_an_error_of_the_step_comes_through_and_nothing_is_left() -> None:
    calls = []

    def step(model: nn.Module, batch: Any) -> None:
        calls.append(1)
        if len(calls) == 12:
            raise ValueError("loss is nan")
        model(batch[0])

    with pytest.raises(ValueError, match="loss is nan"):
        wb.profile(workload(step=step), steps=4)
    assert not Path("runs").exists()
    wb.profile(workload(), steps=2)


def test_out_of_memory_is_named_and_says_what_to_try() -> None:
    def step(model: nn.Module, batch: Any) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")

    with pytest.raises(torch.OutOfMemoryError, match="20 GiB") as caught:
        wb.profile(workload(step=step), steps=2)
    assert "batch_size" in caught.value.__notes__[0]


def test_the_remedy_is_said_once_also_of_an_error_that_is_raised_again() -> None:
    error = MemoryError()

    def step(model: nn.Module, batch: Any) -> None:
        raise error

    for _ in range(2):
        with pytest.raises(MemoryError):
            wb.profile(workload(step=step), steps=2)
    assert len(error.__notes__) == 1


def test_a_hung_loader_is_cancelled_with_its_workers() -> None:
    data = torch.utils.data.DataLoader(Slow(64, 60), batch_size=4, num_workers=1)
    with pytest.raises(TimeLimitError, match="waiting for a batch"):
        wb.profile(workload(data), steps=2, time_limit_s=0.5)
    assert not Path("runs").exists()


def test_a_limit_that_is_too_short_for_the_steps_is_refused_early() -> None:
    """Five warm-up steps of 0.1 s fit into 1.2 s; two measured blocks and a window do not."""
    data = torch.utils.data.DataLoader(Slow(64, 0.025), batch_size=4)
    with pytest.raises(TimeLimitError, match="time_limit_s"):
        wb.profile(workload(data), steps=20, time_limit_s=1.2)


def test_a_step_that_profiles_itself_is_refused_and_keeps_its_events() -> None:
    def step(model: nn.Module, batch: Any) -> None:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
            model(batch[0])
        assert "aten::linear" in {event.name for event in profiler.events()}

    with pytest.raises(ProfilerBusyError, match="profiler of its own"):
        wb.profile(workload(step=step), steps=2)


def test_refusals_come_before_anything_runs() -> None:
    ran = SimpleQueue[int]()

    def step(model: nn.Module, batch: Any) -> None:
        ran.put(1)

    work = workload(step=step)
    Path("taken").write_text("a file")
    with pytest.raises(RunError, match="not a folder"):
        wb.profile(work, folder="taken")
    with pytest.raises(SettingError, match="steps=1"):
        wb.profile(work, steps=1)
    with pytest.raises(SettingError, match="time_limit_s"):
        wb.profile(work, time_limit_s=0)
    with pytest.raises(WorkloadError, match=r"wb\.Workload\(model"):
        wb.profile(nn.Linear(2, 2))  # type: ignore[arg-type]
    assert ran.empty()


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"time_limit_s": "5"}, "positive number of seconds"),
        ({"time_limit_s": float("nan")}, "positive number of seconds"),
        ({"keep_training": "no"}, "keep_training='no' must be True or False"),
        ({"name": 5}, "name=5 must be text"),
        ({"settings": {"workers": 2}}, r"wb\.Settings\("),
        ({"record": "stacks"}, r"wb\.Record\("),
    ],
)
def test_an_argument_of_another_kind_is_refused(wrong: dict[str, Any], match: str) -> None:
    with pytest.raises(SettingError, match=match):
        wb.profile(workload(), steps=2, **wrong)


@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_time_limit_beyond_what_a_thread_can_wait_for_is_none() -> None:
    wb.profile(workload(), steps=2, time_limit_s=float("inf"))


def test_a_name_in_any_script_fits_the_file_system() -> None:
    run = wb.profile(workload(name="漢" * 100), steps=2)
    assert run.folder is not None
    assert run.folder.name == "漢" * 36


def test_a_script_that_its_own_workers_run_again_stops_them_with_the_remedy() -> None:
    """Multiprocessing sets this mark while a started worker imports the script."""
    process: Any = multiprocessing.current_process()
    process._inheriting = True
    try:
        with pytest.raises(ProfilerBusyError, match="if __name__ == '__main__'"):
            wb.profile(workload(), steps=2)
        with pytest.raises(ProfilerBusyError, match="if __name__ == '__main__'"), wb.capture():
            pass
    finally:
        del process._inheriting


def test_compilation_is_counted() -> None:
    """One graph for forward; what the compiler adds for backward is its own business."""

    def backend(graph: torch.fx.GraphModule, inputs: Any) -> Any:
        return graph.forward

    torch.compiler.reset()
    model = nn.Linear(4, 2)
    compiled = torch.compile(model, backend=backend)

    def step(model: nn.Module, batch: Any) -> None:
        functional.cross_entropy(compiled(batch[0]), batch[1]).backward()

    run = wb.profile(wb.Workload(model, loader(8), step=step), steps=2)
    assert record_of(run).compilation["graphs"] == 1
    assert record_of(run).compilation["graph_breaks"] == 0
