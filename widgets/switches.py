"""Switches for every setting, in the notebook; what they show is a value for the next cell."""

from collections.abc import Mapping
from dataclasses import fields
from html import escape
from pathlib import Path
from threading import Lock
from typing import Any

from workbench.errors import MissingExtraError, SettingError
from workbench.pages.script import joined
from workbench.settings import Settings
from workbench.widgets.controls import controls

try:
    import anywidget
    import traitlets
except ModuleNotFoundError as missing:
    raise MissingExtraError("anywidget", "notebook", "A widget") from missing

_HERE = Path(__file__).parent


class Switches(anywidget.AnyWidget):
    """Native controls for every field of :class:`~workbench.settings.Settings`.

    The page sends what its form shows as a custom message: a trait that a page changes while an
    async cell runs can leave the widget without answers for the rest of a session. The kernel
    answers through one trait, so that every view and a reloaded page show the same.

    >>> switches = Switches()                     # doctest: +SKIP
    >>> wb.profile(work, switches.settings)       # doctest: +SKIP
    """

    _esm = joined(_HERE / "switches.js")
    _css = _HERE / "switches.css"
    _controls: traitlets.List[Any] = traitlets.List().tag(sync=True)
    _state = traitlets.Dict().tag(sync=True)

    def __init__(
        self, settings: Settings | None = None, *, effective: Mapping[str, Any] | None = None
    ) -> None:
        """Show ``settings``; ``effective`` tells the values that apply to the user's own work.

        Args:
            settings: What the switches show at first; everything *as yours* when left out.
            effective: Values of the user's work by setting name, shown beside *as yours*. Names
                that are no setting are ignored.
        """
        self._lock = Lock()
        self._effective = {
            name: _word(value) for name, value in (effective or {}).items() if value is not None
        }
        self._shown: dict[str, Any] = {}
        self._settings = Settings()
        self._error: str | None = None
        super().__init__(_controls=[control.to_json() for control in controls()])
        self._show((settings or Settings()).to_json(), ticket=None)
        self.on_msg(self._receive)

    @property
    def settings(self) -> Settings:
        """What the switches show.

        Raises:
            SettingError: They show a combination that is not valid.
        """
        with self._lock:
            if self._error is not None:
                raise SettingError(f"The switches show an invalid combination: {self._error}")
            return self._settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        self._show(settings.to_json(), ticket=None)

    def _receive(self, _widget: Any, content: Any, _buffers: Any) -> None:
        """Take what a page's form shows; may run on any thread of the kernel."""
        if not isinstance(content, dict) or content.get("kind") != "set":
            return
        values = content.get("values")
        if isinstance(values, dict):
            self._show(values, ticket=content.get("ticket"))

    def _show(self, values: dict[str, Any], *, ticket: str | None) -> None:
        """Hold ``values``, valid or not, and answer the page whose message has this ticket."""
        with self._lock:
            self._shown = {name: value for name, value in values.items() if value is not None}
            try:
                self._settings = Settings.from_json(self._shown)
                self._error = None
            except SettingError as invalid:
                self._error = str(invalid)
            self._state = {
                "values": self._shown,
                "effective": self._effective,
                "summary": str(self._settings),
                "error": self._error,
                "ticket": ticket,
            }

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in self._shown.items())
        return f"Switches({shown})"

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """The widget where there is a kernel, and a table where there is none."""
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        return {**data, "text/plain": repr(self), "text/html": self._table()}, metadata

    def _table(self) -> str:
        rows = []
        for name in (field.name for field in fields(Settings)):
            yours = escape(self._effective.get(name, ""))
            value = escape(_word(self._shown.get(name, "as yours")))
            rows.append(
                f'<tr><th scope="row" style="text-align:left">{name}</th>'
                f"<td>{value}</td><td>{yours}</td></tr>"
            )
        error = f"<p>✕ {escape(self._error)}</p>" if self._error else ""
        return (
            '<table><caption>Settings for the next run</caption><thead><tr><th scope="col">Setting'
            '</th><th scope="col">Value</th><th scope="col">As yours</th></tr></thead>'
            f"<tbody>{''.join(rows)}</tbody></table>{error}"
        )


def _word(value: Any) -> str:
    """A value as the page's own controls name it."""
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value))
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)
