"""The benchmark of collectives: what is told of made-up times, and one real run of each kind."""

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from workbench.errors import SettingError, TimeLimitError, WorkloadError
from workbench.parallel import collectives, collectives_bench
from workbench.parallel.collectives_costs import CollectiveCosts, Measured
from workbench.parallel.collectives_plan import Plan, absent
from workbench.parallel.mpirun import mpirun_arguments
from workbench.parallel.process_tree import let_go, start_tree

pytestmark = pytest.mark.slow
WORKER = "workbench.parallel.collectives_worker"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a benchmark of this test makes its own; its processes are told by it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def of_ours(folder: Path) -> list[int]:
    """Processes of this test's benchmark that run; another test's are none of ours."""
    found = []
    for each in psutil.process_iter(["cmdline", "status"]):
        words = each.info["cmdline"] or []
        own = WORKER in words and any(word.startswith(str(folder)) for word in words)
        if own and each.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(each.pid)
    return found


def costs() -> CollectiveCosts:
    """Two ranks: gloo takes 100 µs and 1 ns a byte of the buffer, MPI 2 µs and 2 ns."""
    made = []
    for backend, latency, each in (("gloo", 100_000, 1), ("mpi4py", 2_000, 2)):
        for size in (1_000, 10_000, 1_000_000):
            took = latency + each * size
            times = (took, took + 10, took - 10)
            made.append(
                Measured(backend=backend, collective="all_reduce", bytes=size, ranks=2, ns=times)
            )
    return CollectiveCosts(
        measured=tuple(made), world_size=2, copy_gb_s=4.0, absent={"nccl": "no device"}
    )


def test_latency_and_bandwidth_are_fitted_and_held_against_the_machine() -> None:
    """Of two ranks the all-reduce moves each byte once (2 · ½) in two hops."""
    fits = costs().fits.set_index("backend")
    assert fits["latency_ns"]["gloo"] == pytest.approx(100_000)
    assert fits["latency_ns"]["mpi4py"] == pytest.approx(2_000)
    assert fits["bus_gb_s"].tolist() == pytest.approx([1.0, 0.5])
    assert fits["of_copy"].tolist() == pytest.approx([0.25, 0.125])


def test_it_says_who_is_faster_for_which_sizes() -> None:
    """100 + x against 2 + 2x: MPI up to 98 kB, gloo above."""
    found = costs()
    assert found.sentences == ("all_reduce: mpi4py from 1.00 kB to 10.0 kB, gloo at 1.00 MB",)
    assert "not here: nccl (no device)" in repr(found)
    chart = found.figure()
    assert "mpi4py is the fastest all-reduce of 1.00 kB" in chart.title
    assert "gloo of 1.00 MB" in chart.title
    assert "4.00 GB/s" in chart.subtitle
    assert chart.table is not None
    assert len(chart.table.rows) == 6
    assert "was not measured" in costs().figure("broadcast").subtitle


@pytest.mark.parametrize(
    "asked",
    [
        {"world_size": 1},
        {"backends": ("carrier pigeon",)},
        {"backends": "gloo"},
        {"sizes": (0,)},
        {"sizes": ()},
        {"kinds": ("gossip",)},
    ],
)
def test_what_cannot_be_measured_is_refused_at_once(asked: dict[str, object]) -> None:
    with pytest.raises(SettingError):
        collectives(**asked)  # type: ignore[arg-type]


def test_a_back_end_that_is_not_here_is_told_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "openmpi-bin" in str(absent("mpi4py"))
    with pytest.raises(SettingError, match="openmpi-bin"):
        collectives(backends=("mpi4py",))
    with pytest.raises(SettingError, match="torchrun"):
        mpirun_arguments(2)


def test_gloo_and_mpi_are_measured_and_nothing_stays(folder: Path) -> None:
    found = collectives(
        backends=("gloo", "mpi4py"), kinds=("all_reduce", "all_to_all"), sizes=(1024, 65536)
    )
    cases = found.table[["backend", "collective", "bytes"]].to_records(index=False).tolist()
    assert sorted(cases) == sorted(
        (backend, kind, size)
        for backend in ("gloo", "mpi4py")
        for kind in ("all_reduce", "all_to_all")
        for size in (1024, 65536)
    )
    assert (found.table["median_ns"] > 0).all()
    assert found.copy_gb_s is not None
    assert found.notes == ()
    assert of_ours(folder) == []


def test_the_time_limit_ends_it_whole(folder: Path) -> None:
    """Half a second is less than two processes need to start."""
    with pytest.raises(TimeLimitError, match="0 of 35"):
        collectives(backends=("gloo",), time_limit_s=0.5)
    assert of_ours(folder) == []


def test_an_interrupt_ends_it_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(started: object, deadline: float) -> bool:
        assert of_ours(folder), "the ranks run"
        raise KeyboardInterrupt

    monkeypatch.setattr(collectives_bench, "_wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        collectives(backends=("gloo",))
    assert of_ours(folder) == []


def test_ranks_that_fail_are_told_with_what_they_said_last(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = [sys.executable, "-c", "raise SystemExit('no such link')"]
    monkeypatch.setattr(collectives_bench, "_commands", lambda plan, folder: [(program, {})] * 2)
    with pytest.raises(WorkloadError, match="no such link"):
        collectives(backends=("gloo",))


def test_a_back_end_that_fails_does_not_take_the_others_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def played(plan: Plan, deadline: float) -> Any:
        if plan.backend == "mpi4py":
            raise WorkloadError("The ranks of mpi4py ended with code 1.")
        one = Measured(backend="gloo", collective="all_reduce", bytes=64, ranks=2, ns=(10, 12))
        return [one], 5.0, []

    monkeypatch.setattr(collectives_bench, "_measure", played)
    monkeypatch.setattr(collectives_bench, "absent", lambda name: None)
    found = collectives(backends=("mpi4py", "gloo"), sizes=(64,))
    assert list(found.table["backend"]) == ["gloo"]
    assert found.notes == ("The ranks of mpi4py ended with code 1.",)
    with pytest.raises(WorkloadError, match="mpi4py ended"):
        collectives(backends=("mpi4py",), sizes=(64,))


def test_a_tree_ends_whole_with_children_in_groups_of_their_own(tmp_path: Path) -> None:
    """As mpirun's ranks are; the parent would not pass a signal on."""
    code = (
        "import subprocess, sys, time\n"
        "c = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], "
        "start_new_session=True)\n"
        "print(c.pid, flush=True)\n"
        "time.sleep(600)"
    )
    said = tmp_path / "said"
    with said.open("wb") as log:
        parent = start_tree([sys.executable, "-c", code], os.environ, log, folder=tmp_path / "no")
    until = time.monotonic() + 60
    while not said.read_text().endswith("\n"):
        assert time.monotonic() < until
        time.sleep(0.02)
    child = int(said.read_text())
    let_go(parent)
    deadline = time.monotonic() + 20
    while psutil.pid_exists(child) and time.monotonic() < deadline:
        try:
            if psutil.Process(child).status() == psutil.STATUS_ZOMBIE:
                os.waitpid(child, os.WNOHANG)
                break
        except (psutil.Error, ChildProcessError):
            break
        time.sleep(0.05)
    assert parent.returncode is not None
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE
