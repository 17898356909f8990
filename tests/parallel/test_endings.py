"""However a job ends, it says why, and no process, file or shared memory is left."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from workbench.errors import RankError, TimeLimitError
from workbench.parallel.job import PREFIX
from workbench.parallel.launch import launch

pytestmark = pytest.mark.slow

WAIT_S = 60


def end(rank: Any, payload: dict[str, str]) -> int:
    """Rank 1 ends as it is told; rank 0 waits for it."""
    how = payload["how"]
    if rank.number == 1:
        if how == "raise":
            raise ValueError("planted")
        if how == "exit":
            os._exit(7)
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if how == "hang":
            time.sleep(1000)
    rank.barrier()
    return int(rank.number)


def left() -> list[str]:
    """What still tells of a job of this process."""
    files = [str(p) for p in Path("/tmp").glob(f"{PREFIX}{os.getpid()}-*")]
    return files + [str(child) for child in psutil.Process().children(recursive=True)]


ENDINGS = [
    pytest.param("raise", RankError, "rank 1 of 2 failed first.*ValueError: planted"),
    pytest.param("exit", RankError, "rank 1 of 2 ended with exit code 7", marks=pytest.mark.soak),
    pytest.param("kill", RankError, "rank 1 of 2 was killed by SIGKILL", marks=pytest.mark.soak),
    pytest.param(
        "hang",
        TimeLimitError,
        "(?s)time_limit_s=90.*rank1: .*in end",
        marks=pytest.mark.soak,
    ),
]


@pytest.mark.parametrize(("how", "kind", "match"), ENDINGS)
def test_a_rank_that_fails_ends_all_and_says_why(how: str, kind: type, match: str) -> None:
    before = left()
    with pytest.raises(kind, match=match):
        launch(end, {"how": how}, world_size=2, time_limit_s=90 if how == "hang" else 120)
    assert left() == before


@pytest.mark.soak
@pytest.mark.parametrize(("how", "match"), [("raise", "failed first"), ("kill", "by SIGKILL")])
def test_ranks_of_mpirun_end_alike(how: str, match: str) -> None:
    before = left()
    assert launch(end, {"how": "return"}, world_size=2, launcher="mpirun") == (0, 1)
    with pytest.raises(RankError, match=f"rank 1 of 2 .*{match}"):
        launch(end, {"how": how}, world_size=2, launcher="mpirun")
    assert left() == before


@pytest.mark.parametrize(
    "number", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.soak)]
)
def test_ranks_die_with_the_process_that_started_them(number: int, tmp_path: Path) -> None:
    """As a kernel's restart ends it, without a chance to clean up; and as an interrupt does."""
    program = tmp_path / "program.py"
    program.write_text(
        "import signal\n"
        "from tests.parallel.test_endings import end\n"
        "from workbench.parallel.launch import launch\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "launch(end, {'how': 'hang'}, world_size=2)\n"
    )
    caller = subprocess.Popen(
        [sys.executable, str(program)], env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    )
    try:
        folders = lambda: list(Path("/tmp").glob(f"{PREFIX}{caller.pid}-*"))  # noqa: E731
        wait(lambda: any((f / "rank1.pid").exists() for f in folders()))
        (folder,) = folders()
        own = psutil.Process(caller.pid)
        tree = own.children(recursive=True)
        assert len(tree) >= 4  # the warden, torchrun and two ranks
        caller.send_signal(number)
        caller.wait(WAIT_S)
        wait(lambda: not any(map(runs, tree)))
        wait(lambda: not folder.exists())
    finally:
        caller.kill()


def runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def wait(until: Any) -> None:
    deadline = time.monotonic() + WAIT_S
    while not until():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.1)
