"""Several traces read by several processes at once, each into its cache.

Columns are never sent from one process to another: a worker leaves them in the trace's Arrow cache,
and whoever opens the trace next only maps that file. So memory stays what the caller uses, beside
one trace for each worker. Workers end with the caller, whatever ends it.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from workbench.errors import SettingError
from workbench.trace.cache import open_trace

_POLL_S = 0.02
_GRACE_S = 5.0
_HERE = Path(__file__).resolve().parents[2]
_START = "from workbench.trace.pool import work; work()"


def read_into_caches(paths: Sequence[str | Path], *, workers: int) -> None:
    """Read traces with several processes, so that ``open_trace`` only has to map their columns.

    What cannot be read, or has no place for a cache, is passed over: opening it tells why.

    Args:
        paths: Trace files.
        workers: Most processes at once; each holds one trace.

    Raises:
        SettingError: There is not at least one worker.
    """
    if workers < 1:
        raise SettingError(f"workers={workers}: give at least 1.")
    waiting = [Path(path).absolute() for path in paths]
    running: list[subprocess.Popen[bytes]] = []
    try:
        while waiting or running:
            running = [each for each in running if not _done(each)]
            while waiting and len(running) < workers:
                running.append(_start(waiting.pop(0)))
            time.sleep(_POLL_S)
    finally:
        _end(running)


def work() -> None:
    """Read the one trace that stands on the command line; ends when the caller does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller decides
    signal.signal(signal.SIGTERM, _leave)
    threading.Thread(target=_end_with_caller, daemon=True).start()
    open_trace(sys.argv[1])


def _start(path: Path) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    command = [sys.executable, "-P", "-c", _START, str(path)]
    found = os.pathsep.join(filter(None, (str(_HERE), os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(  # noqa: S603
        command,
        stdin=subprocess.PIPE,
        stdout=quiet,
        stderr=quiet,
        env={**os.environ, "PYTHONPATH": found},
    )


def _done(worker: subprocess.Popen[bytes]) -> bool:
    if worker.poll() is None:
        return False
    if worker.stdin is not None:
        worker.stdin.close()
    return True


def _end(running: Sequence[subprocess.Popen[bytes]]) -> None:
    for each in running:
        each.terminate()
    for each in running:
        try:
            each.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            each.kill()
            each.wait()
        finally:
            if each.stdin is not None:
                each.stdin.close()


def _leave(*_: Any) -> None:
    raise SystemExit(1)  # half-made caches are removed on the way out


def _end_with_caller() -> None:
    """The caller holds the other end of stdin, which closes when it dies."""
    with suppress(OSError, ValueError):
        sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_GRACE_S)
    os._exit(1)
