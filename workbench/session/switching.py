"""Swap the settings between two steps; those of before come back where the new ones fail."""

import time

from workbench.session.effects import ChangeRow
from workbench.session.live import Live
from workbench.session.stopping import TRAINING
from workbench.session.told import forget, told
from workbench.settings import Settings


def enter(live: Live, settings: Settings) -> None:
    """Bring settings into force, and show them."""
    live.course.enter(settings)
    board = live.board
    board.settings = settings
    board.notes, board.effective = live.course.notes, live.course.effective


def switch(live: Live) -> None:
    """Apply what was asked for last."""
    board, orders = live.board, live.orders
    asked, before = orders.take_settings(), board.settings
    if asked is None:
        return
    after = asked.settings
    if after == before:
        board.tell("state")
        return
    row = ChangeRow(
        asked_ns=asked.asked_ns,
        step=board.step,
        before=before,
        after=after,
    )
    starts = ", which starts processes for it" if after.ranks is not None else ""
    board.say(board.status, f"Switching to {after}{starts}.")
    try:
        with live.code.stage(TRAINING):
            live.course.leave()
            enter(live, after)
    except Exception as error:  # noqa: BLE001 - a setting that cannot act is told
        text, remedy = told(error)
        forget(error)
        row.error = f"{text} In force is again: {before}."
        board.trouble(row.error, remedy)
        live.course.leave()
        enter(live, before)
        board.tell("error")
    else:
        row.applied_ns = time.monotonic_ns()
        row.note = live.course.lost
        live.blamed = row
        board.trouble(None)
        if not asked.undoing:
            orders.remember(before)
    board.changed_settings(row)
    board.tell("change")
    board.say("running" if orders.running else "paused", f"In force: {board.settings}.")


def take_back(live: Live, row: ChangeRow, text: str, remedy: str) -> None:
    """Put the settings of before a change back, because steps under it fail."""
    board = live.board
    row.error = f"{text} Back to: {row.before}."
    live.blamed = None
    live.orders.forget(row.before)
    enter(live, row.before)
    now = time.monotonic_ns()
    board.changed_settings(
        ChangeRow(
            asked_ns=now,
            applied_ns=now,
            step=board.step,
            before=row.after,
            after=row.before,
            note="put back by itself",
        )
    )
    board.trouble(row.error, remedy)
    board.tell("change")
    board.tell("error")
