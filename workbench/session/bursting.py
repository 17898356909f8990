"""Record a burst of the profiler on the thread that trains, between two of its steps."""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from workbench.errors import ProfilerBusyError
from workbench.profiling.writing import Measured
from workbench.recording.lead import lead_steps
from workbench.recording.loader.recorder import LoaderRecorder
from workbench.recording.window import Window, warm_up
from workbench.session.burst import Burst
from workbench.session.live import Live
from workbench.session.stepping import one_step
from workbench.session.told import forget, told

KEPT = 100
"""Steps without the profiler that go into the Run as its step times of record."""

IN_RANKS = (
    "ranks train here, which a burst cannot look into: wb.profile with the same settings records "
    "all ranks into one Run, or switch parallel off."
)


def record(live: Live, burst: Burst) -> None:
    """Profile the next steps; a Run is made of them beside the training."""
    board, course = live.board, live.course
    if course.in_ranks:
        burst.end("failed", IN_RANKS)
        board.tell("burst")
        return
    burst.step, burst.status = board.step, "recording"
    burst.began_ns = time.monotonic_ns()
    board.say("running", f"Recording {burst.steps} steps under the profiler.")
    board.tell("burst")
    course.interrupted()
    try:
        _record(live, burst)
    except Exception as error:  # noqa: BLE001 - the training goes on without the burst
        burst.end("failed", told(error)[0])
        forget(error)
    burst.ended_ns = time.monotonic_ns()
    course.interrupted()
    if board.status == "running":
        board.say("running", "Training.")
    board.tell("burst")


def _record(live: Live, burst: Burst) -> None:
    training, first = live.course.training, live.board.step
    warm_up()
    window = Window(live.record, training.device.type)
    loader = LoaderRecorder(on=live.record.loader)
    done = 0
    try:
        window.prepare()
        with _looked_into(live, loader):
            lead = lead_steps(training.effective) if loader.probe.is_on else 1
            if not all(_step(live) for _ in range(lead)):
                burst.end("failed", "a step failed, or the session ended, before it was recorded")
                return
            training.synchronize()
            window.start()
            while done < burst.steps:
                window.begin_step(live.board.step)
                if not _step(live):
                    break
                window.end_step()
                done += 1
            training.synchronize()
            window.stop()
        if window.gave_way:
            raise ProfilerBusyError(
                "a step of this workload starts a torch profiler of its own, and two at once empty "
                "each other: take it out of the step."
            )
        if not done:
            burst.end("failed", "no step was complete while it was recorded")
            return
        measured = _measured(live, first, first + lead)
        measured.loader = loader
        window.set_aside()
    finally:
        window.stop()
        if not window.is_aside:
            loader.finish()
    live.reader.read(burst, window, measured, lambda: live.board.tell("burst"))


def _step(live: Live) -> bool:
    return one_step(live, profiled=True) and not live.orders.ending


@contextmanager
def _looked_into(live: Live, loader: LoaderRecorder) -> Iterator[None]:
    """Record what the loader does; its workers are started anew for it where no place is lost."""
    feed = live.course.feed
    loader.start()
    try:
        if loader.probe.is_on:
            live.course.probe = loader.probe
            why = feed.look_into(loader.probe)
            if why is not None:
                loader.probe.notes.append(f"{why}: wb.profile records them from their start")
        yield
    finally:
        live.course.probe = None
        feed.look_away()
        loader.probe.rest()


def _measured(live: Live, first: int, recorded: int) -> Measured:
    """What is known of a burst; ``recorded`` is its first step under the profiler."""
    training = live.course.training
    known = live.telemetry.columns(max(0, first - KEPT))
    profiled = known["profiled"]
    same = known["change"] == (known["change"][-1] if len(profiled) else 0)
    before, under = same & ~profiled, profiled & (known["step"] >= recorded)
    times = _whole(known["step_ns"][before])
    half = len(times) // 2
    losses = [float(value) for value in known["loss"][before] if not math.isnan(value)]
    return Measured(
        record=live.record,
        settings=live.board.settings,
        effective=training.effective,
        blocks=[block for block in (times[:half], times[half:]) if block],
        input_ns=_whole(known["input_ns"][before]),
        profiled_step_ns=_whole(known["step_ns"][under]),
        samples_per_step=training.samples_per_step,
        notes=[
            *training.notes,
            "a burst inside a session: step times of record are those of the steps before it",
        ],
        loss=losses[-1] if losses else None,
    )


def _whole(times: Any) -> list[int]:
    return [int(each) for each in times]
