"""The panel as a widget: messages in, answers and updates out; it holds no state of its own."""

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench.errors import MissingExtraError, WorkbenchError
from workbench.pages.escape import visible
from workbench.pages.script import joined
from workbench.settings import Settings
from workbench.units import time_text
from workbench.widgets.panel.desk import Desk
from workbench.widgets.panel.errands import Errands
from workbench.widgets.panel.sender import Sender
from workbench.widgets.panel.static import static_html, static_text

try:
    import anywidget
except ModuleNotFoundError as missing:
    raise MissingExtraError("anywidget", "notebook", "The panel") from missing

_HERE = Path(__file__).parent
AWAY_S = 180
"""A page is gone when it has not been heard for so long; it says something every 20 seconds."""
BYE_S = 15
"""The same after it has said goodbye, which it also does before it is drawn anew."""


class Panel(anywidget.AnyWidget):
    """Live charts, switches, findings and Runs of one training; made by ``wb.panel``.

    ``.session`` is the training itself, ``.settings`` what is in force, ``.run`` and ``.findings``
    what the last burst recorded, ``.timeline`` the timeline that *Show me* opened.
    """

    _esm = joined(_HERE / "panel.js")
    _css = _HERE / "panel.css"

    def __init__(self, desk: Desk, *, live: bool = True, keep_running: bool = False) -> None:
        """Show what is on the desk; ``wb.panel`` makes both."""
        self.desk = desk
        self.timeline: Any = None
        """The timeline that was opened last."""
        self._live = live
        self._keep_running = keep_running
        self._sent: dict[str, str] = {}
        self._greeted = False
        self._heard = time.monotonic()
        self._sending = threading.Lock()
        self._errands = Errands()
        self._sender = Sender(self._update, active=self._is_active, failed=self._failed)
        if not live:
            self._sender.close()  # nobody is sent anything
        super().__init__()
        _answer_where_asked(self.comm)
        self.on_msg(self._receive)
        desk.show_with(self._open_timeline)
        self._unlisten: Callable[[], None] = desk.session.listen(self._told)

    @property
    def session(self) -> Any:
        """The training, as ``workbench.session.Session``."""
        return self.desk.session

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        found: Settings = self.session.state.settings
        return found

    @property
    def run(self) -> Any | None:
        """The Run that the last burst recorded."""
        return self.desk.recorded()[0]

    @property
    def findings(self) -> Any | None:
        """What is wrong in it, worst first."""
        return self.desk.recorded()[1]

    @property
    def is_live(self) -> bool:
        """Whether it is a widget that can be clicked, and not a still page."""
        return self._live

    def refresh(self) -> None:
        """Show what is new, also where nothing has told of it."""
        self.desk.forget_history()
        self._sender.poke()

    def close(self) -> None:
        """End the training, discard what it changed, and take the panel away."""
        try:
            if hasattr(self, "_unlisten"):
                self._unlisten()
                self._errands.close()
                self._sender.close()
                self.session.stop()
        finally:
            super().close()

    def _open_timeline(self, run: Any, finding: Any | None) -> tuple[str, str | None]:
        """The timeline of a Run as a widget for the page, at a finding where one is given.

        Returns:
            The widget, and what is shown of the finding.
        """
        if self.timeline is not None:
            self.timeline.close()
        self.timeline = run.timeline(static=False)
        shown = None if finding is None else shown_text(self.timeline.show(finding))
        return self.timeline.model_id, shown

    def __repr__(self) -> str:
        return static_text(self.desk)

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget where it is live; always a page and a text that need no kernel."""
        data, metadata = (
            (super()._repr_mimebundle_(**kwargs) or ({}, {})) if self._live else ({}, {})
        )
        return {**data, "text/plain": repr(self), "text/html": static_html(self.desk)}, metadata

    def _receive(self, _widget: Any, content: Any, _buffers: Any) -> None:
        """A page says something; may run on any thread of the kernel."""
        if not isinstance(content, dict) or not isinstance(content.get("kind"), str):
            return
        kind, ticket = content.get("kind"), content.get("ticket")
        self._heard = time.monotonic()
        if kind == "hello":
            self._greet()
        if kind == "bye":  # its cell was deleted or cleared, unless it is drawn again at once
            self._heard -= AWAY_S - BYE_S
        if kind in ("hello", "ping"):
            self._say({"kind": "answer", "ticket": ticket})
            return
        if kind in self.desk.quick:
            self._answer(self.desk.quick[kind], content)
        elif kind in self.desk.slow:
            self._say({"kind": "taken", "ticket": ticket})
            self._errands.add(lambda: self._answer(self.desk.slow[kind], content))

    def _greet(self) -> None:
        """A page came, or came back: it gets everything."""
        with self._sending:
            self._greeted = True
            self._sent.clear()
            self.desk.feed.rewind()
            self.desk.forget_history()
        self._errands.add(self._learn)
        self._sender.poke()

    def _learn(self) -> None:
        try:
            self.desk.learn()
        except Exception as error:  # noqa: BLE001 - the edge: it is shown in the status line
            self._failed(error)
        self._sender.poke()

    def _answer(self, handler: Callable[[Any], Any], content: dict[str, Any]) -> None:
        """Do what was asked; whatever goes wrong is answered and shown, and never lost."""
        answer: dict[str, Any] = {"kind": "answer", "ticket": content.get("ticket")}
        try:
            self.desk.notice = None
            result = handler(content)
            if result is not None:
                answer["result"] = result
        except Exception as error:  # noqa: BLE001 - the edge: it is shown in the status line
            answer["error"] = self._failed(error)
        self._say(answer)
        self._sender.poke()

    def _failed(self, error: Exception) -> str:
        text = (
            str(error) if isinstance(error, WorkbenchError) else f"{type(error).__name__}: {error}"
        )
        self.desk.say(text, kind="error")
        return visible(text)

    def _told(self, kind: str) -> None:
        """Something happened in the session: called from its thread, so it only pokes."""
        if kind in ("burst", "trial"):
            self.desk.forget_history()
            self.desk.tell_of_burst()
        self._sender.poke()

    def _is_active(self) -> bool:
        return self.session.state.status in ("running", "busy", "stopping")

    def _update(self) -> int:
        """Send what is new; the size of it in bytes."""
        self._leave()
        with self._sending:
            if not self._greeted:
                self.desk.feed.rewind()
                self._sent.clear()
            said, buffers = self.desk.feed.take()  # first: it sets the clock that sections tell
            written = {k: json.dumps(v) for k, v in self.desk.sections().items()}
            new = {k: text for k, text in written.items() if self._sent.get(k) != text}
            if not new and not said:
                return 0
            self._sent |= new
            sections = {k: json.loads(text) for k, text in new.items()}
            self._say({"kind": "update", "sections": sections, **said}, buffers)
        return sum(map(len, new.values())) + sum(map(len, buffers))

    def _leave(self) -> None:
        """Nobody looks any more: what nobody asked to go on alone waits for somebody."""
        if self._keep_running or not self._greeted or self.desk.readonly:
            return
        if time.monotonic() - self._heard > AWAY_S and self.session.state.status == "running":
            self.session.pause()
            self.desk.say(
                "Paused, because no page showed the panel any more; "
                "wb.panel(work, keep_running=True) goes on alone."
            )

    def _say(self, content: dict[str, Any], buffers: list[bytes] | None = None) -> None:
        if self.comm is not None:
            self.send(content, buffers=buffers or [])


def shown_text(selected: Any | None) -> str:
    """What *Show me* shows, in words."""
    if selected is None:
        return "The trace holds no event of what this finding speaks of; all of it is shown."
    length = time_text(selected.duration_us * 1000)
    if selected.name is None:
        return f"Shown: the longest step, {length}."
    return f"Shown: {selected.name}, {length}, in {selected.lane}."


def _answer_where_asked(comm: Any) -> None:
    """Let messages of the page reach the thread that Jupyter chose for them.

    ipykernel 7.4 sends them to the thread that wrote last instead, which may be busy with a cell.
    """
    if hasattr(comm, "_reply_subshell_for"):
        comm._reply_subshell_for = lambda _data, default: default
