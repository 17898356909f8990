"""The panel without a kernel: what was in force, measured and found, as a page and as text."""

from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.figures import palette
from workbench.pages.assets import page
from workbench.pages.escape import escape, visible
from workbench.pages.findings import findings_section, findings_text
from workbench.pages.table import NOT_KNOWN, Column, Table, table_html, table_text
from workbench.units import NOT_MEASURED, bytes_text, share_text, significant, time_text
from workbench.widgets.panel.drawing import PARTS, part_totals, parts_picture, step_picture
from workbench.widgets.panel.feed import in_force, system_columns, unprofiled
from workbench.widgets.panel.view import cost, measured_words, number_in_force, other_settings
from workbench.widgets.words import word

if TYPE_CHECKING:
    from workbench.widgets.panel.desk import Desk

_WORDS = {
    "ready": "Not started yet",
    "running": "Was running",
    "paused": "Was paused",
    "busy": "Was measuring",
    "stopping": "Was stopping",
    "stopped": "Stopped",
    "failed": "Failed",
}


def static_html(desk: "Desk") -> str:
    """State, settings, charts with their tables, changes, findings and Runs."""
    state = desk.session.state
    steps = unprofiled(desk.session.telemetry.columns(0))
    trouble = " ".join(str(text) for text in (state.error, state.remedy) if text)
    parts = [f'<p class="wb-verdict">{escape(verdict(desk, steps))}</p>']
    parts.append(f'<p class="wb-quiet">{escape(_how(desk))}</p>')
    if trouble:
        parts.append(f"<p>✕ {escape(trouble)}</p>")
    run, findings = desk.recorded()
    if findings is not None:
        parts += [f"<h3>Findings in {escape(run.name)}</h3>", *_under(desk, run)]  # type: ignore[union-attr]
        parts.append(findings_section(findings))
    if _count(steps):
        marks = [(c.number, c.step) for c in desk.session.changes if c.applied_ns is not None]
        parts.append("<h3>Step time</h3>")
        under = "<p>Not measured: every step that is kept ran under the profiler.</p>"
        parts.append(step_picture(steps, marks) if np.isfinite(steps["step_ns"]).any() else under)
        mine, words = scope(desk, steps)
        parts += [f"<h3>Where a step goes{words}</h3>", parts_picture(part_totals(mine))]
        parts.append(table_html(parts_table(mine)))
        beside = table_html(beside_table(desk, mine), caption=False)
        parts += [f"<h3>Beside the steps{words}</h3>", beside]
    for table in (settings_table(desk), changes_table(desk), runs_table(desk)):
        if table.rows:
            parts += [f"<h3>{escape(table.caption)}</h3>", table_html(table, caption=False)]
    return page(*parts)


def static_text(desk: "Desk") -> str:
    """The same for a terminal."""
    steps = unprofiled(desk.session.telemetry.columns(0))
    parts = [visible(verdict(desk, steps)), visible(_how(desk))]
    if _count(steps):
        mine, _ = scope(desk, steps)
        parts += [table_text(parts_table(mine)), table_text(beside_table(desk, mine))]
    tables = (settings_table(desk), changes_table(desk))
    parts += [table_text(table) for table in tables if table.rows]
    _, findings = desk.recorded()
    if findings is not None:
        parts.append(findings_text(findings))
    return "\n\n".join(parts)


def verdict(desk: "Desk", steps: Any) -> str:
    """One sentence."""
    state = desk.session.state
    if not _count(steps):
        return f"{_WORDS.get(state.status, state.status)}: {desk.title}"
    mine, words = scope(desk, steps)
    totals = part_totals(mine)
    whole = sum(ns for ns in totals.values() if ns)
    waits = totals["input_ns"]
    said = f"A step of {desk.title} takes {time_text(_median(mine['step_ns']))}{words}, median"
    if waits is not None and whole:
        said += f"; {share_text(waits / whole)} of all time is waiting for data"
    return said


def scope(desk: "Desk", steps: Any) -> tuple[Any, str]:
    """The steps under the settings of the last one, and what they are where others were before."""
    mine = in_force(steps)
    last = int(mine["change"][-1]) if "change" in mine else 0
    if last != number_in_force(desk.session.changes):
        return mine, f" under the settings of change {last}" if last else " as yours"
    return mine, f" since change {last}" if _count(mine) < _count(steps) else ""


def _under(desk: "Desk", run: Any) -> list[str]:
    measured, other = measured_words(run), other_settings(run, desk.session.state.settings)
    told = [] if measured is None else [f'<p class="wb-quiet">{escape(measured)}</p>']
    return told if other is None else [*told, f"<p>⚠ {escape(other)}</p>"]


def parts_table(steps: Any) -> Table:
    """Time per step of every part."""
    totals = part_totals(steps)
    whole = sum(ns for ns in totals.values() if ns)
    rows = tuple(
        (palette.category(PARTS[name]).label, None if ns is None or not whole else ns / whole, ns)
        for name, ns in totals.items()
    )
    columns = (
        Column(name="part"),
        Column(name="share of the step", kind="share"),
        Column(name="mean per step", kind="time"),
    )
    caption = "Where a step goes"
    if whole:
        caption += f": parts of the mean step, {time_text(whole)} together, not of the median one"
    return Table(caption=caption, columns=columns, rows=rows)


def beside_table(desk: "Desk", steps: Any) -> Table:
    """Loss, machine and storage: medians of what was sampled beside these steps."""
    rows = desk.session.telemetry.system(int(steps["at_ns"][0]) - 1)
    seen = system_columns(rows) if "at_ns" in rows else {}

    def median(name: str) -> float | None:
        return _median(seen[name]) if name in seen else None

    loss = _median(steps["loss"][-20:]) if "loss" in steps else None
    told = (
        ("loss, last 20 steps", NOT_MEASURED if loss is None else significant(loss)),
        ("GPU in use", share_text(median("device_share"))),
        ("GPU memory of the process", bytes_text(median("device_bytes"))),
        ("processors of the machine busy", share_text(median("cpu_share"))),
        ("memory of the process", bytes_text(median("rss_bytes"))),
        ("read from storage by the machine, a second", bytes_text(median("disk_read_bytes_s"))),
        ("received by the machine, a second", bytes_text(median("network_in_bytes_s"))),
    )
    columns = (Column(name="what"), Column(name="median", kind="value"))
    return Table(caption="Beside the steps", columns=columns, rows=told)


def settings_table(desk: "Desk") -> Table:
    """What is switched; empty when everything is as the user has it."""
    changes = desk.session.state.settings.changes()
    effective = desk.effective
    rows = tuple((n, word(v), _own(effective.get(n))) for n, v in changes.items())
    names = ("setting", "in force", "as yours")
    return Table(caption="Settings", columns=tuple(Column(name=n) for n in names), rows=rows)


def changes_table(desk: "Desk") -> Table:
    """Every change of a switch with its effect."""
    told = desk.sections()["changes"]["rows"]
    kept = ("number", "text", "step", "before", "after")
    rows = tuple((*(r[k] for k in kept), r["error"] or r["effect"], r["note"]) for r in told)
    names = ("no.", "change", "from step", "before", "after", "effect", "note")
    columns = tuple(Column(name=n) for n in names)
    return Table(caption="What the switches did", columns=columns, rows=rows)


def runs_table(desk: "Desk") -> Table:
    """The Runs on disk."""
    told = desk.shelf.section()["rows"]
    rows = tuple((r["name"], r["created"], r["settings"], r["step"], r["note"]) for r in told[:10])
    names = ("run", "recorded", "settings", "median step", "note")
    columns = tuple(Column(name=n) for n in names)
    return Table(caption=f"Runs in {desk.shelf.folder}", columns=columns, rows=rows)


def _how(desk: "Desk") -> str:
    state = desk.session.state
    said = [
        f"{_WORDS.get(state.status, state.status)} when this was shown",
        f"step {state.step}" if state.step else "no step yet",
        f"watching costs {share_text(cost(state.overhead_ratio))}",
        f"settings: {state.settings}",
    ]
    return " · ".join(said)


def _own(value: Any) -> str:
    return NOT_KNOWN if value is None else word(value)


def _count(steps: Any) -> int:
    return len(steps["step"]) if "step" in steps else 0


def _median(values: Any) -> float | None:
    there = values[np.isfinite(values)]
    return float(np.median(there)) if len(there) else None
