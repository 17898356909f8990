"""Which rank failed first, and what it says."""

import json
import re
import signal
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from workbench import errors
from workbench.errors import RankError, WorkbenchError

_PEER = (
    *("Connection closed by peer", "Connection reset by peer", "Broken pipe", "Socket closed"),
    *("Connection refused", "remote process exited", "Timed out waiting", "NCCL communicator was"),
)
"""What a rank says when another one is gone."""
_CODES = re.compile(r"rank\s*:\s*(\d+)[^\n]*\n\s*exitcode\s*:\s*(-?\d+)")
_OF_MPIRUN = re.compile(r"process rank (\d+) with PID \d+ on node \S+ exited on signal (\d+)")
_CODES_OF_MPIRUN = re.compile(r"Process name: \[\[\d+,\d+\],(\d+)\]\s+Exit code:\s*(\d+)")
_ENDED_BY_LAUNCHER = -int(signal.SIGTERM)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """What one rank said before it ended."""

    rank: int
    time_ns: int
    kind: str
    message: str
    text: str
    """The traceback."""

    @property
    def follows_another(self) -> bool:
        """Whether it tells of a rank that was gone before."""
        return any(words in self.message for words in _PEER)


def write_failure(folder: Path, rank: int, error: BaseException) -> None:
    """Leave word of an error, whole or not at all."""
    failure = Failure(
        rank=rank,
        time_ns=time.time_ns(),
        kind=type(error).__name__,
        message=_message(error),
        text="".join(traceback.format_exception(error)),
    )
    partial = folder / f"rank{rank}.failure.partial"
    partial.write_text(json.dumps(asdict(failure)), encoding="utf-8")
    partial.rename(folder / f"rank{rank}.failure")


def _message(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"the program called sys.exit({error.code!r})"
    return str(error)


def read_failures(folder: Path) -> list[Failure]:
    """What ranks said, the earliest first."""
    found = [
        Failure(**json.loads(path.read_text(encoding="utf-8")))
        for path in folder.glob("rank*.failure")
    ]
    return sorted(found, key=lambda failure: failure.time_ns)


def explain(failures: Sequence[Failure], silent: Sequence[int], log: str, size: int) -> Exception:
    """The error of a job that failed: that of the first failing rank.

    Args:
        failures: What ranks said.
        silent: Ranks that ended without a result and without a word.
        log: What the launcher wrote.
        size: Ranks of the job.
    """
    own = [failure for failure in failures if not failure.follows_another]
    if own:
        return _told(own[0], size)
    codes = _exit_codes(log)
    died = [rank for rank in silent if codes.get(rank, 0) not in (0, _ENDED_BY_LAUNCHER)]
    if died:
        return RankError(_died(died[0], codes[died[0]], size))
    if failures:
        return _told(failures[0], size)
    if silent:
        last = "\n".join(log.strip().splitlines()[-20:])
        return RankError(
            f"rank {silent[0]} of {size} ended without a result. The launcher says:\n{last}"
        )
    return RankError(f"the job of {size} ranks ended without a result.")


def _exit_codes(log: str) -> dict[int, int]:
    """How ranks ended, as torchrun or Open MPI say it; a signal is below 0."""
    codes = {int(rank): -int(number) for rank, number in _OF_MPIRUN.findall(log)}
    for found in (_CODES_OF_MPIRUN.findall(log), _CODES.findall(log)):
        codes |= {int(rank): int(code) for rank, code in found}
    return codes


def _told(failure: Failure, size: int) -> Exception:
    kind: Any = getattr(errors, failure.kind, None)
    ours = isinstance(kind, type) and issubclass(kind, WorkbenchError)
    if ours and kind not in (errors.MissingExtraError, RankError):
        error: Exception = kind(failure.message)
        error.add_note(f"It was raised in rank {failure.rank} of {size}:\n{failure.text}")
        return error
    return RankError(
        f"rank {failure.rank} of {size} failed first, and the others were ended with it: "
        f"{failure.kind}: {failure.message}\n\n{failure.text}"
    )


def _died(rank: int, code: int, size: int) -> str:
    who = f"rank {rank} of {size}"
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        why = " Often memory ran out: use fewer ranks or a smaller batch." if code == -9 else ""
        return f"{who} was killed by {name}, and the others were ended with it.{why}"
    return (
        f"{who} ended with exit code {code} without an error, and the others were ended with it: "
        "something in the step or the data ends the process (os._exit, or a library that aborts)."
    )
