"""One step of a training, and what becomes of one that fails."""

from dataclasses import replace

from workbench.profiling.memory import is_out_of_memory, what_held
from workbench.session.live import Live
from workbench.session.switching import enter, take_back
from workbench.session.told import forget, told

PROVEN = 20
"""After so many steps an error is no longer blamed on the settings; running out of memory is."""
RESTARTS_MOST = 3
"""So often the loader's workers are started again when they die between two good steps."""


def one_step(live: Live, *, profiled: bool = False) -> bool:
    """Train one step; tells whether it was trained.

    Args:
        live: The training.
        profiled: Whether its times are not those of the training alone.
    """
    board = live.board
    row = board.last_applied
    number = 0 if row is None else row.number
    try:
        live.course.step(step=board.step, change=number, profiled=profiled)
    except Exception as error:  # noqa: BLE001 - of the user's code, and shown
        _failed(live, error)
        return False
    live.restarts = 0
    board.stepped()
    return True


def _ranks_failed(live: Live, text: str, remedy: str) -> None:
    """Go on in this process from where the ranks took over; without a change to blame, wait."""
    board, row = live.board, live.blamed
    live.course.leave(wanted=False)
    if row is not None and row.after == board.settings and row.before.ranks is None:
        take_back(live, row, text, remedy)
        return
    enter(live, replace(board.settings, parallel=None))
    live.blamed = None
    live.orders.pause()
    board.trouble(f"{text} In force is: {board.settings}.", remedy)
    board.say("failed", f"An error of the ranks ended step {board.step}: training waits.")
    board.tell("error")


def _failed(live: Live, error: Exception) -> None:
    memory = is_out_of_memory(error)
    held = what_held(error, live.work, live.board.settings) if memory else ""
    text, remedy = told(error, held)
    forget(error)
    del error
    board, course, row = live.board, live.course, live.blamed
    if course.in_ranks:
        _ranks_failed(live, text, remedy)
        return
    feed = course.feed
    if row is not None and (memory or board.step - row.step < PROVEN):
        feed.again()
        course.leave()
        course.drop_gradients()
        take_back(live, row, text, remedy)
    elif "worker of the loader" in text and live.restarts < RESTARTS_MOST:
        live.restarts += 1
        feed.restart()
        course.interrupted()
        board.trouble(f"{text} Its workers were started again.", remedy)
        board.tell("error")
    else:
        feed.done()
        feed.restart()
        if memory:
            course.drop_gradients()
        course.interrupted()
        live.orders.pause()
        board.trouble(text, remedy)
        board.say("failed", f"An error ended step {board.step}: training waits.")
        board.tell("error")
