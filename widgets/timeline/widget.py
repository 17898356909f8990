"""The widget: packs a scene, holds the selection, and answers what the page asks of the trace."""

from __future__ import annotations

import math
from threading import Lock
from typing import TYPE_CHECKING, Any

from workbench.errors import MissingExtraError, RunError
from workbench.pages.timeline.assets import stylesheet, widget_script
from workbench.pages.timeline.encode import pack
from workbench.pages.timeline.static import NOTEBOOK_BYTES, StaticTimeline
from workbench.run.timeline_answers import Answers
from workbench.widgets.timeline.places import place_of
from workbench.widgets.timeline.selection import Selection

try:
    import anywidget
    import traitlets
except ModuleNotFoundError as missing:
    raise MissingExtraError("anywidget", "notebook", "A widget") from missing

if TYPE_CHECKING:
    from workbench.findings import Finding
    from workbench.run.run import Run


class Timeline(anywidget.AnyWidget):
    """Lanes of everything that was recorded, on one clock.

    >>> timeline = run.timeline()                     # doctest: +SKIP
    >>> timeline.selection                            # doctest: +SKIP
    Selection(start_us=5031.2, end_us=5988.0, name=None, lane=None, rank=None)
    """

    _esm = widget_script()
    _css = stylesheet()
    _scene = traitlets.Bytes().tag(sync=True)
    _place = traitlets.Dict().tag(sync=True)
    """What the kernel asks the page to show; the page never sets it."""

    def __init__(self, run: Run, *, ranks: Any = None, most_bytes: int = NOTEBOOK_BYTES) -> None:
        """Show a Run.

        Args:
            run: The Run.
            ranks: Numbers of the ranks to stack; by default the first eight.
            most_bytes: How large the static twin in a saved notebook may be.
        """
        self._answers = Answers(run, ranks)
        self._static = StaticTimeline(scene=self._answers.scene, most_bytes=most_bytes)
        self._lock = Lock()
        self._selection: Selection | None = None
        self._shown = 0
        super().__init__(_scene=pack(self._answers.scene))
        self.on_msg(self._receive)

    @property
    def selection(self) -> Selection | None:
        """What is selected in the page; ``None`` when nothing is."""
        with self._lock:
            return self._selection

    def summary(self, start_us: float | None = None, end_us: float | None = None) -> dict[str, Any]:
        """What a stretch holds: breakdown, longest kernels, causes of idle time.

        Args:
            start_us: Where it starts, in µs from the trace's first event; by default the selection.
            end_us: Where it ends.

        Raises:
            RunError: Nothing is selected and no stretch is given.
        """
        if start_us is None or end_us is None:
            selected = self.selection
            if selected is None:
                raise RunError("Nothing is selected: select a stretch in the timeline or give one.")
            start_us, end_us = selected.start_us, selected.end_us
        low, high = _stretch(start_us, end_us)
        return self._answers.summary(low, high)

    def go_to(self, start_us: float, end_us: float) -> None:
        """Show and select a stretch in every view of this timeline.

        Args:
            start_us: Where it starts, in µs from the trace's first event.
            end_us: Where it ends.

        Raises:
            RunError: It is no stretch of time.
        """
        low, high = _stretch(start_us, end_us)
        with self._lock:
            self._shown += 1
            self._selection = Selection(start_us=start_us, end_us=end_us)
            self._place = {"from": low, "to": high, "event": -1, "number": self._shown}

    def show(self, finding: Finding) -> Selection | None:
        """Show and select what a finding of this Run speaks of, and hand it back.

        That is the longest gap, operator or collective of its kind in the step that has most of
        it, or the longest step. A finding about the whole Run, such as a noisy machine, and one
        of which the trace holds no event, have no place: then nothing moves.

        Args:
            finding: One of ``run.findings``.
        """
        place = place_of(self._answers.scene, self._answers.ranks, finding)
        if place is None:
            return None
        told = {"from": place.start, "to": place.end, "event": place.event}
        if place.event >= 0:
            told |= self._answers.span(place.event)
        with self._lock:
            self._shown += 1
            self._selection = self._named(told)
            shown = {"from": place.start, "to": place.end, "event": place.event}
            self._place = {**shown, "number": self._shown}
            return self._selection

    def _receive(self, _widget: Any, content: Any, _buffers: Any) -> None:
        """Take what a page sends; may run on any thread of the kernel."""
        if not isinstance(content, dict):
            return
        if content.get("kind") == "select":
            self._select(content.get("selection"))
            return
        asked = content.get("ticket")
        if not isinstance(asked, str):
            return
        try:
            answer = self._answer(content)
        except Exception as error:  # noqa: BLE001 - the page shows its own numbers instead
            self.send({"ticket": asked, "error": f"{type(error).__name__}: {error}"})
            return
        self.send({"ticket": asked, "answer": answer})

    def _answer(self, content: dict[str, Any]) -> Any:
        if content.get("kind") == "summary":
            return self._answers.summary(int(content["from"]), int(content["to"]))
        if content.get("kind") == "details":
            return self._answers.details(int(content["event"]))
        raise RunError(f"the page asked for {content.get('kind')!r}, which nobody answers.")

    def _select(self, told: Any) -> None:
        try:
            made = None if told is None else self._named(told)
        except (KeyError, TypeError, ValueError, IndexError):
            return
        with self._lock:
            self._selection = made

    def _named(self, told: dict[str, Any]) -> Selection:
        event = int(told["event"])
        start, end = float(told["from"]) / 1000, float(told["to"]) / 1000
        if event < 0:
            return Selection(start_us=start, end_us=end)
        found = self._answers.named(event)
        return Selection(
            start_us=start, end_us=end, name=found.name, lane=found.lane, rank=found.rank
        )

    def __repr__(self) -> str:
        return self._static.text()

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget where there is a kernel, and the static twin where there is none."""
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        return {**data, "text/html": self._static.html(), "text/plain": repr(self)}, metadata


def _stretch(start_us: Any, end_us: Any) -> tuple[int, int]:
    """Both ends in nanoseconds."""
    try:
        low, high = float(start_us), float(end_us)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise RunError(
            f"from {start_us!r} to {end_us!r} µs is no stretch: give a start and a later end."
        )
    return round(low * 1000), round(high * 1000)
