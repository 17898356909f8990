"""What the page asks for, done to a session; and what the page is to know of it."""

import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from workbench.errors import RunError, SettingError
from workbench.figures import palette
from workbench.pages.escape import visible
from workbench.settings import Settings
from workbench.widgets.panel.code import code
from workbench.widgets.panel.feed import Feed
from workbench.widgets.panel.grouping import grouped
from workbench.widgets.panel.own import own_values
from workbench.widgets.panel.runs import Shelf
from workbench.widgets.panel.view import (
    burst_words,
    bursts_section,
    changes_section,
    findings_section,
    status_section,
    trial_section,
)

Content = Mapping[str, Any]
Result = dict[str, Any] | None
ShowTimeline = Callable[[Any, Any | None], tuple[str, str | None]]
"""From a Run, and a finding of it, to the timeline's widget and what it shows of the finding."""
BURST_STEPS = 10
REPORT_LIMIT_S = 900
LOOK = ("input", "forward", "backward", "optimizer", "host_other", "host_operators", "compute")


class Desk:
    """One session behind one panel; every handler may be called from any thread of the kernel.

    Args:
        session: The live training, or what only looks at a loop of the user's own.
        shelf: Where its Runs are.
        title: What it is called.
        work: What is trained; ``None`` for a loop that is only looked at.
        readonly: Nothing of it can be switched.
    """

    def __init__(
        self,
        session: Any,
        *,
        shelf: Shelf,
        title: str,
        work: Any = None,
        readonly: bool = False,
    ) -> None:
        self.session = session
        self.shelf = shelf
        self.title = title
        self.readonly = readonly
        self.work = work
        self.effective: dict[str, Any] = {} if work is None else own_values(work)
        self.feed = Feed(session.telemetry)
        self.notice: dict[str, str] | None = None
        self._show: ShowTimeline | None = None
        self._offers: Any = None
        self._dismissed: Any = None
        self._tried: str | None = None
        self._kept: bool | None = None
        self._groups: tuple[Any, dict[str, Any]] | None = None
        self._history: dict[str, Any] | None = None
        self._changes: tuple[Any, dict[str, Any]] | None = None
        self._findings: tuple[tuple[Any, Settings], dict[str, Any]] | None = None
        self.quick: dict[str, Callable[[Content], Result]] = {
            "start": self._start,
            "pause": lambda _: session.pause(),
            "step": lambda _: session.step_once(),
            "settings": self._settings,
            "undo": lambda _: session.undo(),
            "burst": self._record,
            "bursts": self._bursts,
            "verify": self._verify,
            "cancel": self._cancel,
            "keep": lambda _: self._decide(keep=True),
            "revert": lambda _: self._decide(keep=False),
            "dismiss": self._dismiss,
            "note": self._note,
        }
        """Handlers that return at once."""
        self.slow: dict[str, Callable[[Content], Result]] = {
            "stop": lambda content: session.stop(keep=bool(content.get("keep"))),
            "code": lambda _: {"code": code(self)},
            "show": self._show_finding,
            "open": self._open,
            "timeline": self._timeline,
            "compare": self._compare,
            "report": self._report,
            "delete": self._delete,
            "baseline": self._baseline,
        }
        """Handlers that take time."""

    def show_with(self, show: ShowTimeline) -> None:
        """Who makes a widget of a timeline, once there is somebody."""
        self._show = show

    # What the page is to know.

    def sections(self) -> dict[str, Any]:
        """Everything but the numbers, by name."""
        state, changes = self.session.state, self.session.changes
        status = status_section(
            state, title=self.title, readonly=self.readonly, changes=len(changes)
        )
        status |= {
            "burst": burst_words(state.bursts[-1] if state.bursts else None),
            "watch_changes": bool(self.session.watch_changes),
            "burst_every_s": self.session.burst_every_s,
            "notice": self.notice,
        }
        told = self._told_changes(changes)
        history = self._history  # another thread may forget it meanwhile
        if history is None:
            self._history = history = self.shelf.section()
        trial = None if state.trial is self._dismissed else state.trial
        return {
            "status": status,
            "changes": told,
            "bursts": bursts_section(state.bursts, self.feed.seconds),
            "findings": self._told_findings(),
            "trial": trial_section(trial, finding=self._tried, kept=self._kept),
            "history": history,
            "offers": self._grouped(),
            "look": {"colours": colours(), "reasons": self._reasons()},
        }

    def recorded(self) -> tuple[Any | None, Any | None]:
        """The Run of the last burst that is done, and its findings."""
        burst = self._last_burst()
        return (None, None) if burst is None else (burst.run, burst.findings)

    def learn(self) -> None:
        """Ask what can be switched here; takes seconds the first time on a machine."""
        if self._offers is None and not self.readonly:
            self._offers = tuple(self.session.offers())

    def forget_history(self) -> None:
        """Look at the disk again."""
        self._history = None

    def say(self, text: str, *, kind: str = "note") -> None:
        """A line below the status."""
        self.notice = {"kind": kind, "text": visible(text)}

    def tell_of_burst(self) -> None:
        """Say what became of a burst that failed."""
        bursts = self.session.state.bursts
        if bursts and bursts[-1].status == "failed":
            self.say(f"The burst failed: {bursts[-1].error}", kind="error")

    def _last_burst(self) -> Any | None:
        done = [b for b in self.session.state.bursts if b.findings is not None]
        return done[-1] if done else None

    def _grouped(self) -> dict[str, Any]:
        from workbench.machine.cpus import usable_cpus

        if self.readonly:
            return {"ready": True, "groups": [], "presets": []}
        offers = self._offers  # another thread may learn them meanwhile
        if self._groups is None or self._groups[0] is not offers:
            self._groups = (offers, grouped(offers, self.effective, usable_cpus()))
        return self._groups[1]

    def _reasons(self) -> dict[str, str]:
        return {"device": "no GPU is in use"} if self._on_cpu() else {}

    def _on_cpu(self) -> bool:
        used = self.session.state.settings.device or self.effective.get("device")
        return used is not None and str(used).startswith("cpu")

    def _told_changes(self, changes: Any) -> dict[str, Any]:
        """What the switches did; reckoned again when something changed."""
        key = tuple((c.number, c.effect, c.error) for c in changes)
        if self._changes is not None and self._changes[0] == key:
            return self._changes[1]
        told = changes_section(changes, self.session.changes_dropped)
        shown = changes[len(changes) - len(told["rows"]) :]
        for row, change in zip(told["rows"], shown, strict=True):
            at = change.applied_ns
            row["at_s"] = None if at is None else self.feed.seconds(at)
        self._changes = (key, told)
        return told

    def _told_findings(self) -> dict[str, Any]:
        run, findings = self.recorded()
        settings = self.session.state.settings
        if self._findings is None or self._findings[0] != (run, settings):
            told = findings_section(run, findings, settings)
            self._findings = ((run, settings), told)
        return self._findings[1]

    # What the page asks for.

    def _start(self, _: Content) -> Result:
        paused = self.session.state.status == "paused"
        (self.session.resume if paused else self.session.start)()
        return None

    def _settings(self, content: Content) -> Result:
        values = content.get("values")
        if not isinstance(values, dict):
            raise SettingError("The page sent no settings: reload it.")
        given = {name: value for name, value in values.items() if value is not None}
        self.session.replace(Settings.from_json(given))
        return None

    def _record(self, content: Content) -> Result:
        self.session.burst(int(content.get("steps") or BURST_STEPS))
        return None

    def _bursts(self, content: Content) -> Result:
        every = content.get("burst_every_minutes")
        if every is not None and (not isinstance(every, int | float) or not every > 0):
            raise SettingError(
                f"burst every {every} minutes: give a number above 0, or leave it empty for none."
            )
        self.session.watch_changes = bool(content.get("watch_changes"))
        self.session.burst_every_s = None if every is None else every * 60.0
        return None

    def _verify(self, content: Content) -> Result:
        _, found = self._found(content)
        self._tried, self._kept = str(content.get("finding")), None
        self.session.verify(found)
        return None

    def _cancel(self, _: Content) -> Result:
        if self.session.state.trial is None:
            raise SettingError("There is no trial to cancel: *Try it* of a finding begins one.")
        self.session.state.trial.cancel()
        return None

    def _decide(self, *, keep: bool) -> Result:
        trial = self.session.state.trial
        if trial is None or trial.verification is None:
            raise SettingError(
                "There is no finished trial to keep or revert: wait for its verdict."
            )
        if keep:
            self.session.apply(trial.verification.settings)
        self._kept = keep
        return None

    def _dismiss(self, _: Content) -> Result:
        self._dismissed, self._tried, self._kept = self.session.state.trial, None, None
        return None

    def _found(self, content: Content) -> tuple[Any, Any]:
        """The Run and the finding that the page means."""
        run, findings = self.recorded()
        which = content.get("finding")
        if findings is None or not str(which).isdigit() or int(str(which)) >= len(findings):
            raise RunError(
                "That finding is gone: a newer burst took its place. Choose among its findings."
            )
        return run, findings[int(str(which))]

    def _show_finding(self, content: Content) -> Result:
        run, finding = self._found(content)
        return self._widget(run, finding)

    def _timeline(self, content: Content) -> Result:
        return self._widget(self._run(content), None)

    def _widget(self, run: Any, finding: Any | None) -> Result:
        if self._show is None:
            raise RunError("The timeline needs a notebook: run.timeline() shows it there.")
        widget, shown = self._show(run, finding)
        told = {"title": f"Timeline of {visible(run.name)}", "widget": widget}
        return told if shown is None else {**told, "note": visible(shown)}

    def _run(self, content: Content) -> Any:
        return self.shelf.runs[str(content.get("name"))]

    def _open(self, content: Content) -> Result:
        run = self._run(content)
        return {"title": f"Run {visible(run.name)}", "text": visible_lines(repr(run))}

    def _compare(self, content: Content) -> Result:
        if self.shelf.baseline is None:
            raise RunError("Choose a baseline above the list of Runs first.")
        first, second = self.shelf.runs[self.shelf.baseline], self._run(content)
        title = f"{visible(second.name)} against {visible(first.name)}"
        return {"title": title, "text": visible_lines(repr(first.compare(second)))}

    def _baseline(self, content: Content) -> Result:
        name = content.get("name")
        self.shelf.baseline = None if name is None else str(name)
        self.shelf.compare_all()
        self.forget_history()
        return None

    def _note(self, content: Content) -> Result:
        self.shelf.write_note(str(content.get("name")), str(content.get("text", "")))
        self.forget_history()
        return None

    def _delete(self, content: Content) -> Result:
        name = str(content.get("name"))
        self.shelf.runs.delete(name)
        self.forget_history()
        self.say(f"{name} was deleted.")
        return None

    def _report(self, content: Content) -> Result:
        run = self._run(content)
        place = Path(run.place)
        target = place.with_name(f"{place.name}.html")
        command = [sys.executable, "-m", "workbench", "report", str(place), "-o", str(target)]
        if self.shelf.baseline not in (None, run.name):
            command += ["--baseline", str(self.shelf.runs[str(self.shelf.baseline)].place)]
        self.say(f"Writing the report of {run.name}…")
        try:
            done = subprocess.run(  # noqa: S603 - our own command over the user's own folder
                command, capture_output=True, text=True, timeout=REPORT_LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise RunError(
                f"The report of {run.name} took more than {REPORT_LIMIT_S // 60} minutes. "
                f"In a terminal it has no limit: {shlex.join(command[2:])}"
            ) from None
        if done.returncode:
            said = done.stderr.strip().splitlines()
            raise RunError(
                f"No report of {run.name}: {said[-1] if said else 'it ended without a word.'} "
                f"All of it says, in a terminal: {shlex.join(command[2:])}"
            )
        self.say(f"Report: {target}")
        return {"path": str(target)}


def visible_lines(text: str) -> str:
    """Text of several lines without what could hide or turn it."""
    return "\n".join(visible(line) for line in text.split("\n"))


def colours() -> dict[str, str]:
    """The palette's colours for what the live charts draw."""
    found = {name: palette.category(name).colour for name in (*LOOK, "communication")}
    return {**found, "storage": palette.stall("storage").colour}
