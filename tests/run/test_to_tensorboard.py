"""The copy for TensorBoard, read by the plugin's own loader: its numbers are ours."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from torch_tb_profiler.profiler.data import RunProfileData
from torch_tb_profiler.profiler.event_parser import ProfileRole

import workbench as wb
from tests.kineto import Kineto
from workbench.errors import MissingExtraError, RunError
from workbench.run.run import Run
from workbench.run.to_tensorboard import shown_as

pytestmark = pytest.mark.filterwarnings("ignore:The copy keyword is deprecated")
"""Of pandas, in the plugin's own code."""

GLOO = Path(__file__).parents[1] / "analysis" / "gloo" / "ddp"
STEPS = 8
ENDING = ".pt.trace.json.gz"


def modern(rank: int | None = None) -> Kineto:
    """Steps of 1 ms as torch writes them today: mirrored on the device, with a NCCL collective.

    A step waits 300 µs for data, computes from 360 to 660, copies from 660 to 710, and reduces
    from 600 to 800: 60 µs of it beside the compute and 50 µs beside the copy.
    """
    made = Kineto(gpu=True)
    if rank is not None:
        made.header["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 2}
    for number in range(STEPS):
        at, first = number * 1000.0, number * 3 + 1
        made.step(number, at, 1000)
        mirrored = {"pid": 0, "tid": 7}
        made.event(f"ProfilerStep#{number}", "gpu_user_annotation", at + 360, 440, **mirrored)
        made.loader(at + 10, 300)
        made.op("aten::mm", at + 330, 40)
        made.launched("sgemm", call=(at + 340, 10), kernel=(at + 360, 300), correlation=first)
        made.runtime("cudaMemcpyAsync", at + 372, 6, correlation=first + 1)
        made.kernel("Memcpy HtoD", at + 660, 50, correlation=first + 1, cat="gpu_memcpy")
        made.range("nccl:all_reduce", at + 385, 20)
        made.op("record_param_comms", at + 386, 15)
        made.launched(
            "ncclDevKernel_AllReduce_Sum_f32",
            call=(at + 390, 8),
            kernel=(at + 600, 200),
            correlation=first + 2,
            stream=9,
        )
    return made


def loaded(path: Path, cache: Path) -> Any:
    return RunProfileData.parse("worker", None, str(path), str(cache))


def costs(data: Any) -> dict[str, float]:
    """The plugin's mean step by what it shows, in µs."""
    return {role.name: data.avg_costs.costs[role] for role in ProfileRole}


def copied(run: Run, folder: Path) -> list[Path]:
    return sorted(run.to_tensorboard(folder / "log").iterdir())


def test_the_plugin_reads_a_trace_of_today_wrong_and_the_copy_right(tmp_path: Path):
    run = wb.open(modern().write(tmp_path / "t.json"))
    raw = loaded(run.traces[0], tmp_path)
    assert len(raw.steps_names) == 2 * STEPS, "it counts the device's mirror of a step"
    assert costs(raw)["DataLoader"] == 0
    assert costs(raw)["Runtime"] == 0

    (path,) = copied(run, tmp_path)
    data = loaded(path, tmp_path)
    assert data.steps_names == [str(number) for number in range(STEPS)]
    told = costs(data)
    # 8 + 10 + 6 µs of calls, of which those after 360 lie beside a kernel.
    assert told == pytest.approx(
        {"Kernel": 300, "Memcpy": 50, "Memset": 0, "Communication": 90, "Runtime": 10}
        | {"DataLoader": 300, "CpuOp": 20, "Other": 230, "Total": 1000}
    )
    overlap = data.comm_overlap_costs[0]
    assert (overlap.computation, overlap.communication, overlap.overlap) == (300, 200, 60)


def test_its_numbers_are_ours_within_a_hundredth(tmp_path: Path):
    run = wb.open(modern().write(tmp_path / "t.json"))
    (path,) = copied(run, tmp_path)
    data, rank = loaded(path, tmp_path), run.ranks[0]
    ours = run.summary.to_json()["ranks"][0]
    time = rank.device_time[0]
    assert costs(data)["Total"] == pytest.approx(ours["steps"]["time_us"]["mean"], rel=0.01)
    share = costs(data)["DataLoader"] / costs(data)["Total"]
    a_batch = ours["input"]["wait_us"] / ours["input"]["batches"]
    assert share == pytest.approx(a_batch / ours["steps"]["time_us"]["mean"], rel=0.01)
    assert sum(c.computation for c in data.comm_overlap_costs) * 1000 == time.compute
    assert sum(c.communication for c in data.comm_overlap_costs) * 1000 == time.communication
    assert run.kernels is not None
    table = data.kernel_stat["sum"].to_dict()
    assert table["sgemm"] == pytest.approx(STEPS * 300)
    assert run.kernels.set_index("name").loc["sgemm", "total_ns"] == STEPS * 300_000


def test_collectives_on_the_host_of_a_real_job_take_as_long_as_ours(tmp_path: Path):
    run = wb.open(GLOO)
    paths = copied(run, tmp_path)
    assert len(paths) == len(run.ranks) == 2
    for path, rank in zip(paths, run.ranks, strict=True):
        data = loaded(path, tmp_path)
        assert rank.communication is not None
        assert rank.steps is not None
        found = sum(each.communication for each in data.comm_overlap_costs)
        assert found == pytest.approx(int(rank.communication["total_ns"].sum()) / 1e3, rel=0.01)
        assert data.steps_names == [str(number) for number in rank.steps.numbers]


@pytest.mark.slow
def test_ranks_get_the_distributed_view(tmp_path: Path):
    """The loader starts a process a file, and joins the ranks by the order of their calls."""
    folder = tmp_path / "job"
    folder.mkdir()
    for rank in range(2):
        modern(rank).write(folder / f"rank{rank}.json")
    target = wb.open(folder).to_tensorboard(tmp_path / "log")
    code = (
        "import json, sys\n"
        "from torch_tb_profiler import io\n"
        "from torch_tb_profiler.profiler.loader import RunLoader\n"
        "if __name__ == '__main__':\n"
        "    with io.Cache() as cache:\n"
        "        run = RunLoader('job', sys.argv[1], cache).load()\n"
        "    everything = run.get_profile('All', run.get_spans('All')[0])\n"
        "    print(json.dumps([run.workers, [v.display_name for v in run.views],"
        " everything.comm_ops['data']]))\n"
    )
    (tmp_path / "load.py").write_text(code)
    command = [sys.executable, "load.py", str(target)]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    workers, views, calls = json.loads(done.stdout.splitlines()[-1])
    assert workers == ["All", "rank0", "rank1"]
    assert "Distributed" in views
    for worker in ("rank0", "rank1"):
        (row,) = calls[worker]["rows"]
        assert row[:2] == ["nccl:all_reduce", STEPS]


def test_one_file_a_rank_under_the_names_it_looks_for(tmp_path: Path):
    run = wb.open(modern().write(tmp_path / "t.json.gz"))
    assert [p.name for p in copied(run, tmp_path)] == [f"rank0.1700000000000{ENDING}"]
    with pytest.raises(RunError, match="there already"):
        run.to_tensorboard(tmp_path / "log")


def test_threads_with_names_and_kernels_without_a_launch_do_no_harm(tmp_path: Path):
    """The plugin makes a number of every thread; a collective before the first step is a kernel."""
    made = modern()
    made.op("aten::add", 20, 10, tid="a thread")  # type: ignore[arg-type]
    made.kernel("ncclDevKernel_Broadcast", -50, 10, correlation=999)
    run = wb.open(made.write(tmp_path / "t.json"))
    (path,) = copied(run, tmp_path)
    assert len(loaded(path, tmp_path).steps_names) == STEPS


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    run = wb.open(modern().write(tmp_path / "t.json"))

    def full(*_: Any, **__: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("workbench.trace.writing.write_trace", full)
    with pytest.raises(OSError, match="full"):
        run.to_tensorboard(tmp_path / "log")
    assert list((tmp_path / "log").iterdir()) == []


def test_without_the_extra_the_command_to_get_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    run = wb.open(modern().write(tmp_path / "t.json"))
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"torch-workbench\[tensorboard\]"):
        run.to_tensorboard(tmp_path / "log")


def test_collectives_that_it_does_not_know_are_shown_under_the_nearest():
    assert shown_as("all_reduce") == "all_reduce"
    assert shown_as("all_to_all") == "all_gather"
    assert shown_as("send_recv") == "broadcast"
