"""Record a burst on the thread that trains; write and read it elsewhere."""

import json
import math
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import ProfilerBusyError
from workbench.profiling.writing import Measured, write_run
from workbench.recording.telemetry import Telemetry
from workbench.recording.window import Window, warm_up
from workbench.session.burst import Burst
from workbench.settings import Record, Settings
from workbench.store.names import safe_name

if TYPE_CHECKING:
    from workbench.findings import Finding
    from workbench.run.run import Run
    from workbench.workload import Workload
    from workbench.workload.training import Training

READ_S = 180.0
"""After so long the process that reads a trace is ended; the Run is there without its findings."""
KEPT = 100
"""Steps without the profiler that go into the Run as its step times of record."""


class Recorder:
    """Makes Runs of bursts.

    Args:
        work: What is trained, for the Run's name.
        record: What the profiler records.
        folder: Where Runs are kept.
        telemetry: Holds the step times without the profiler.
    """

    def __init__(
        self, work: "Workload", record: Record, folder: Path, telemetry: Telemetry
    ) -> None:
        self.name: str | None = None
        self._work = work
        self._record = record
        self._folder = folder
        self._base = Path.cwd()
        self._telemetry = telemetry
        self._threads: list[threading.Thread] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        self._stopped = False

    def record(
        self,
        burst: Burst,
        training: "Training",
        settings: Settings,
        *,
        step: Callable[[], bool],
        first: int,
        tell: Callable[[], None],
    ) -> None:
        """Profile the next steps, and hand the trace to a thread that makes a Run of it."""
        self._stopped = False
        warm_up()
        window = Window(self._record, training.device.type)
        done = 0
        window.prepare()
        try:
            if not step():  # one step settles the profiler
                burst.end("failed", "a step failed, or the session ended, before it was recorded")
                return
            training.synchronize()
            window.start()
            while done < burst.steps:
                window.begin_step(first + 1 + done)
                if not step():
                    break
                window.end_step()
                done += 1
            training.synchronize()
        finally:
            window.stop()
        if window.gave_way:
            raise ProfilerBusyError(
                "a step of this workload starts a torch profiler of its own, and two at once empty "
                "each other: take it out of the step."
            )
        if not done:
            burst.end("failed", "no step was complete while it was recorded")
            return
        window.set_aside()
        measured = self._measured(training, settings, first)
        burst.status = "reading"
        thread = threading.Thread(
            target=self._read,
            args=(burst, window, measured, tell),
            name="workbench-burst",
            daemon=True,
        )
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        """End what still reads; a Run that is being written becomes whole."""
        self._stopped = True
        for process in self._processes:
            if process.poll() is None:
                process.kill()
        threads, self._threads = self._threads, []
        for thread in threads:
            thread.join(10)

    def _measured(self, training: "Training", settings: Settings, first: int) -> Measured:
        known = self._telemetry.columns(max(0, first - KEPT))
        profiled = known["profiled"]
        same = known["change"] == (known["change"][-1] if len(profiled) else 0)
        record, under = same & ~profiled, profiled & (known["step"] > first)
        times = [int(ns) for ns in known["step_ns"][record]]
        waits = [int(ns) for ns in known["input_ns"][record]]
        half = len(times) // 2
        losses = [float(v) for v in known["loss"][record] if not math.isnan(v)]
        return Measured(
            record=Record(**{**self._record.to_json(), "loader": False}),
            settings=settings,
            effective=training.effective,
            blocks=[block for block in (times[:half], times[half:]) if block],
            input_ns=waits,
            profiled_step_ns=[int(ns) for ns in known["step_ns"][under]],
            samples_per_step=training.samples_per_step,
            notes=[
                *training.notes,
                "a burst inside a session: step times of record are those of the steps before it",
            ],
            loss=losses[-1] if losses else None,
        )

    def _read(
        self, burst: Burst, window: Window, measured: Measured, tell: Callable[[], None]
    ) -> None:
        from workbench.run.source import load

        try:
            name = safe_name(f"{self.name or self._work.title}-burst")
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

        if self._stopped:
            raise RuntimeError("the session ended before the trace was read.")
        with tempfile.TemporaryDirectory(prefix="workbench-") as folder:
            out = Path(folder) / "findings.json"
            roots = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
            process = subprocess.Popen(  # noqa: S603 - our own module, our own folder
                [sys.executable, "-P", "-m", "workbench.run.aside", str(place), str(out)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, roots))},
            )
            self._processes.append(process)
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
