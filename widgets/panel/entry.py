"""``wb.panel``: the live panel of a training, or a still one where nobody can click."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from workbench.errors import SettingError
from workbench.machine.audience import current_shell, kernel_of
from workbench.settings import Record, Settings
from workbench.store.names import as_folder
from workbench.widgets.panel.desk import Desk
from workbench.widgets.panel.mode import Mode, chosen_mode
from workbench.widgets.panel.runs import Shelf
from workbench.widgets.panel.widget import Panel

if TYPE_CHECKING:
    from workbench.profiling.capture import Capture
    from workbench.workload import Workload

RUNS = "runs"
_DEFAULT_RECORD = Record()
_open: dict[str, Panel] = {}
"""Panels that are live, by the cell that made them: a cell that runs again replaces its own."""


def panel(
    work: "Workload | Capture",
    settings: Settings | None = None,
    *,
    record: Record = _DEFAULT_RECORD,
    folder: str | Path | None = None,
    name: str | None = None,
    mode: Mode = "auto",
    steps: int = 50,
    keep_running: bool = False,
    time_limit_s: float = 600,
) -> Panel:
    """Show a training as it runs: charts, switches that act on it, findings, and what helped.

    In a notebook the cell returns at once and nothing runs until *Start* is pressed; the training
    then runs in a thread of its own, and stopping it puts everything back unless told otherwise.
    Under papermill and nbconvert, and in scripts, nobody can click: there the panel trains
    ``steps`` steps, records a burst, puts everything back, and is a still page. ``mode`` or the
    variable ``WORKBENCH_PANEL`` (live, static) decides where that is guessed wrongly.

    A ``wb.capture()`` in place of a workload shows the same charts of your own loop, to look at
    only.

    Args:
        work: Model, data and step, or a capture around your own loop.
        settings: What is switched from the start.
        record: What bursts record beside operators and kernels.
        folder: Where the Runs of bursts are kept; ``runs`` when left out.
        name: Name of these Runs; the workload's when left out.
        mode: ``live``, ``static``, or ``auto`` to find out.
        steps: Steps of the still panel.
        keep_running: Go on also when no page has shown the panel for minutes; otherwise the
            training pauses then.
        time_limit_s: After so long the still panel shows what it has.

    Raises:
        SettingError: A setting or ``mode`` is invalid.
        ProfilerBusyError: Of the still panel: something else profiles in this process.
    """
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise SettingError(f"steps={steps!r} must be a whole number of at least 1.")
    live = chosen_mode(mode) == "live"
    _close_older(_cell())
    shelf = Shelf(as_folder(folder, RUNS))
    if _is_capture(work):
        from workbench.widgets.panel.watching import Watching

        loop = Watching(cast("Capture", work))
        desk = Desk(loop, shelf=shelf, title="your loop", readonly=True)
        return _remember(Panel(desk, live=live))
    from workbench.session import Session

    training = cast("Workload", work)
    session = Session(training, settings, record=record, folder=folder, name=name)
    desk = Desk(session, shelf=shelf, title=training.title, work=training)
    made = Panel(desk, live=live, keep_running=keep_running)
    if not live:
        train_and_stop(session, steps, time_limit_s)
    return _remember(made)


def train_and_stop(session: Any, steps: int, time_limit_s: float) -> None:
    """Train so many steps, record a burst, and put everything back; returns when it is over."""
    until = time.monotonic() + time_limit_s

    def recorded(kind: str) -> None:
        """No step is trained while the recording is read: those shown are those asked for."""
        if kind == "burst" and session.state.bursts[-1].status == "reading":
            session.pause()

    unlisten = session.listen(recorded)
    session.start()
    try:
        _wait(lambda: (session.state.step or 0) >= steps, session, until)
        if session.state.status == "running":
            session.burst().wait(max(0.0, until - time.monotonic()))
    finally:
        unlisten()
        session.stop(keep=False)


def _wait(over: Any, session: Any, until: float) -> None:
    while not over() and time.monotonic() < until:
        if session.state.status not in ("running", "busy", "ready"):
            return
        time.sleep(0.02)


def _is_capture(work: Any) -> bool:
    from workbench.profiling.capture import Capture

    return isinstance(work, Capture)


def _remember(made: Panel) -> Panel:
    cell = _cell()
    if cell is not None:
        _open[cell] = made
    return made


def _close_older(cell: str | None) -> None:
    """A cell that runs again ends what it started before."""
    older = _open.pop(cell, None) if cell is not None else None
    if older is not None:
        older.close()


def _cell() -> str | None:
    """The cell that is running, where the front end says so."""
    try:
        parent = kernel_of(current_shell()).get_parent("shell")  # type: ignore[union-attr]
    except (AttributeError, TypeError):
        return None
    found = parent.get("metadata", {}).get("cellId")
    return found if isinstance(found, str) else None
