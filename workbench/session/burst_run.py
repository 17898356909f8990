"""Make a Run of a recorded burst beside the training: write it on a thread, read it elsewhere."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.profiling.writing import Measured, write_run
from workbench.recording.window import Window
from workbench.session.burst import Burst
from workbench.store.names import safe_name

if TYPE_CHECKING:
    from workbench.findings import Finding
    from workbench.run.run import Run

READ_S = 180.0
"""After so long the process that reads a trace is ended; the Run is there without its findings."""


class BurstReader:
    """Writes and reads Runs of bursts until it is stopped.

    Args:
        title: Beginning of the names of Runs.
        folder: Where they are kept; below the current folder of now, if relative.
    """

    def __init__(self, title: str, folder: Path) -> None:
        self._title = title
        self._folder = folder
        self._base = Path.cwd()
        self._threads: list[threading.Thread] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        self._stopped = False
        self._lock = threading.Lock()

    def read(
        self, burst: Burst, window: Window, measured: Measured, tell: Callable[[], None]
    ) -> None:
        """Make a Run of it, beside the caller.

        Args:
            burst: Learns what becomes of it.
            window: Has ended, and its trace was set aside.
            measured: What is known besides; the loader's records need not be finished.
            tell: Called when something is new.
        """
        self._stopped = False
        burst.status = "reading"
        thread = threading.Thread(
            target=self._read,
            args=(burst, window, measured, tell),
            name="workbench-burst",
            daemon=True,
        )
        self._threads = [one for one in self._threads if one.is_alive()]
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        """End what still reads; a Run that is being written becomes whole."""
        with self._lock:  # no process may start behind our back
            self._stopped = True
            for process in self._processes:
                if process.poll() is None:
                    process.kill()
        threads, self._threads = self._threads, []
        for thread in threads:
            thread.join(10)

    def _read(
        self, burst: Burst, window: Window, measured: Measured, tell: Callable[[], None]
    ) -> None:
        from workbench.run.source import load

        try:
            if measured.loader is not None:
                measured.loader.finish()
            name = safe_name(f"{self._title}-burst")
            place = write_run(self._folder / name, window, measured, base=self._base)
            burst.run = load(place, base=self._base)
            tell()
            burst.findings = self._findings(burst.run, self._base / place)
        except Exception as error:  # noqa: BLE001 - shown as the burst's own
            text = " ".join(str(error).split())[:300]
            kept = "" if burst.run is None else f" The Run {burst.run.name} is there."
            burst.end("failed", f"{text}{kept}")
        else:
            burst.end("done")
        tell()

    def _findings(self, run: "Run", place: Path) -> "tuple[Finding, ...]":
        from workbench.findings import Finding
        from workbench.run.found import origin_of

        with tempfile.TemporaryDirectory(prefix="workbench-") as folder:
            out = Path(folder) / "findings.json"
            process = self._started(place, out)
            try:
                _, said = process.communicate(timeout=READ_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                raise RuntimeError(f"reading the trace took longer than {READ_S:g} s.") from None
            finally:
                self._processes.remove(process)
            if process.returncode != 0:
                last = said.decode(errors="replace").strip().splitlines()[-1:]
                why = last[0] if last else f"its process ended with {process.returncode}"
                raise RuntimeError(f"the trace was not read: {why}.")
            rows: list[dict[str, Any]] = json.loads(out.read_text())
        origin = origin_of(run)
        return tuple(Finding(**row, origin=origin) for row in rows)

    def _started(self, place: Path, out: Path) -> "subprocess.Popen[bytes]":
        """The process that reads a Run; none once it was stopped."""
        roots = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
        with self._lock:
            if self._stopped:
                raise RuntimeError("the session ended before the trace was read.")
            process = subprocess.Popen(  # noqa: S603 - our own module, our own folder
                [sys.executable, "-P", "-m", "workbench.run.aside", str(place), str(out)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, roots))},
            )
            self._processes.append(process)
        return process
