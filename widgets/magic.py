"""``%load_ext workbench``: the cell magic ``%%workbench`` around a loop of one's own."""

from typing import Any

DEFAULT = "runs/capture"
USAGE = "Use it as  %%workbench [folder]  above a cell whose loop calls cap.step()."


def load_ipython_extension(shell: Any) -> None:
    """Give the shell the magic."""
    shell.register_magic_function(_workbench, magic_kind="cell", magic_name="workbench")


def unload_ipython_extension(shell: Any) -> None:
    """Take the magic away again."""
    shell.magics_manager.magics["cell"].pop("workbench", None)


def _workbench(line: str, cell: str) -> None:
    """Run the cell inside a capture called ``cap``, with live charts above its output.

    The loop takes its batches through ``cap.watch(loader)`` and calls ``cap.step()`` after each.
    An error of the cell stays an error of the cell.
    """
    from IPython import get_ipython
    from IPython.display import display

    from workbench.errors import WorkbenchError
    from workbench.profiling import capture
    from workbench.store.names import as_folder
    from workbench.widgets.panel import panel

    shell: Any = get_ipython()
    target = as_folder(line.strip() or None, DEFAULT)
    cap = capture(target)
    shown = panel(cap, folder=target.parent)
    if shown.is_live:
        display(shown)  # type: ignore[no-untyped-call]
    shell.user_ns["cap"] = cap
    try:
        with cap:
            _run(shell, cell)
        _ = cap.run  # says why, where nothing was recorded
    except WorkbenchError as error:
        error.add_note(USAGE)
        raise
    finally:
        shown.refresh()
        if not shown.is_live:
            display(shown)  # type: ignore[no-untyped-call]


def _run(shell: Any, cell: str) -> None:
    """Run the cell; its error is raised here, to be shown once by the cell around it."""
    show = shell.showtraceback
    shell.showtraceback = lambda *_args, **_more: None
    try:
        result = shell.run_cell(cell)
    finally:
        shell.showtraceback = show
    result.raise_error()
