"""The thread that trains: steps, and between two of them whatever was asked for."""

from workbench.recording.telemetry_system import TelemetrySampler
from workbench.session.bursting import record
from workbench.session.comparing import compare
from workbench.session.live import Live
from workbench.session.records import Status
from workbench.session.restoring import put_back
from workbench.session.stepping import one_step
from workbench.session.stopping import Ended
from workbench.session.switching import enter, switch
from workbench.session.thread_state import ThreadState
from workbench.session.told import forget, told

STEPS_OF_A_WATCH = 10
"""A burst that the session asks for by itself has so many."""


def work_through(live: Live, state: ThreadState) -> Status:
    """Train until the end is wanted, or an error that nothing can be done about; tells which."""
    live.code.bind()
    try:
        with state.here(), put_back(live):
            _train(live)
    except Ended:
        return "stopped"
    except BaseException as error:  # noqa: BLE001 - the end of the thread: it is shown
        live.board.trouble(*told(error))
        forget(error)
        live.board.tell("error")
        return "failed"
    return "stopped"


def _train(live: Live) -> None:
    board, course = live.board, live.course
    sampler = TelemetrySampler(
        live.telemetry,
        waiting=course.waiting,
        workers=lambda: len(course.workers()),
        device=course.device,
    )
    with course.open(kept=lambda: live.orders.keep):
        enter(live, board.settings)
        live.sampler = sampler
        sampler.start()
        try:
            while _ready(live):
                _go_on(live)
        finally:
            sampler.stop()


def _go_on(live: Live) -> None:
    burst = live.orders.next_burst()
    if burst is not None and live.orders.running:
        record(live, burst)
        return
    if one_step(live):
        live.orders.stepped()
    if any(not one.over for one in live.orders.bursts[-1:]):
        return
    reason = live.watcher.look(live.telemetry, live.board.step)
    if reason is not None:
        live.orders.ask_burst(STEPS_OF_A_WATCH, reason)


def _ready(live: Live) -> bool:
    """Do what was asked for, wait while nothing is wanted; whether a step is, false at the end."""
    orders = live.orders
    while not orders.ending:
        if orders.pending is not None:
            switch(live)
        elif orders.trials:
            compare(live, orders.trials.popleft())
        elif orders.running or orders.single:
            count = len(live.course.lanes())
            live.board.say("running", f"Training in {count} ranks." if count else "Training.")
            return True
        else:
            _rest(live)
    return False


def _rest(live: Live) -> None:
    board = live.board
    live.course.interrupted()
    if board.status != "failed":
        board.say("paused", f"Paused after {board.step} steps.")
    with board.changed:
        board.changed.wait_for(live.orders.any, 1.0)
