"""A search for settings, as HTML and as text: the result, its trials, its history, its code."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.figures.trials import trial_times
from workbench.pages.assets import drawing_script, page
from workbench.pages.charts import drawn_chart
from workbench.pages.escape import escape, visible
from workbench.pages.static import StaticFigure
from workbench.pages.table import Column, Table, table_text
from workbench.units import share_text

WIDTH = 80


@dataclass(frozen=True, kw_only=True)
class TuningView:
    """Everything that a search shows of itself, in the order of the page."""

    sentence: str
    rows: Sequence[Mapping[str, Any]]
    per: str
    lines: Sequence[str]
    code: str
    place: str


def trials_chart(view: TuningView, title: str | None = None) -> StaticFigure:
    """The times of the trials, with their table; ``title`` stands for the sentence."""
    figure = trial_times(view.rows, title=title or view.sentence, per=view.per)
    return drawn_chart(figure, _wide(view), "A point with its interval for each trial.")


def tuning_html(view: TuningView) -> str:
    """The verdict, the chart, and trials, history and code."""
    history = "".join(f"<li>{escape(line)}</li>" for line in view.lines)
    chart = trials_chart(view, "The trials in order")
    code = "\n".join(map(escape, view.code.splitlines()))
    script = f"<script>{drawing_script()}</script>" if chart.measured else ""
    return page(
        f'<p class="wb-verdict" role="heading" aria-level="2">{escape(view.sentence)}</p>',
        chart.html(),
        f'<p class="wb-quiet">{_HOW}</p>',
        f"<details><summary>How it came to this</summary><ol>{history}</ol></details>",
        f"<details><summary>The best settings as code</summary><pre>{code}</pre></details>",
        f'<p class="wb-quiet">Kept in {escape(view.place)}.</p>',
        script,
    )


def tuning_text(view: TuningView) -> str:
    """The same for a terminal, in at most 80 columns; the code is one call away."""
    steps = "\n".join(
        textwrap.fill(
            visible(f"{number}. {line}"), WIDTH, subsequent_indent="   ", break_on_hyphens=False
        )
        for number, line in enumerate(view.lines, start=1)
    )
    return "\n\n".join(
        [
            textwrap.fill(visible(view.sentence), WIDTH, break_on_hyphens=False),
            table_text(_narrow(view), caption=False, width=WIDTH),
            textwrap.fill(_HOW, WIDTH),
            steps,
            "Its .code() gives the best settings in plain torch.",
            textwrap.fill(f"Kept in {visible(view.place)}.", WIDTH, break_long_words=False),
        ]
    )


_HOW = (
    "Each took turns with the best settings so far (without it); its gain is that of neighbouring "
    "blocks, and may differ from what the two times give."
)


def _narrow(view: TuningView) -> Table:
    columns = (
        Column(name="setting", kind="name"),
        Column(name=f"time a {view.per}", kind="time"),
        Column(name="without it", kind="time"),
        Column(name="gain", kind="value"),
        Column(name="memory", kind="bytes"),
        Column(name=""),
    )
    rows = tuple(
        (
            row["setting"],
            row["time_ns"],
            row["without_ns"],
            _share(row["gain"]),
            row["device_bytes"] or row["memory_bytes"],
            row["decision"] or "",
        )
        for row in view.rows
        if row["time_ns"] is not None
    )
    return Table(caption="Trials", columns=columns, rows=rows)


def _wide(view: TuningView) -> Table:
    columns = (
        Column(name="setting", kind="name"),
        Column(name="why"),
        Column(name=f"time a {view.per}", kind="time"),
        Column(name="without it", kind="time"),
        Column(name="from", kind="time"),
        Column(name="to", kind="time"),
        Column(name="memory", kind="bytes"),
        Column(name="numbers"),
        Column(name="decision"),
        Column(name="because"),
    )
    rows = tuple(
        (
            row["setting"],
            row["origin"] or "",
            row["time_ns"],
            row["without_ns"],
            row["low_ns"],
            row["high_ns"],
            row["device_bytes"] or row["memory_bytes"],
            (row["parity"] or "not compared").replace("_", " "),
            row["decision"] or "",
            row["reason"],
        )
        for row in view.rows
    )
    return Table(caption="Trials", columns=columns, rows=rows)


def _share(gain: float | None) -> str:
    """A gain with its sign: a loss has a minus, a large one is said in times."""
    if gain is None:
        return ""
    if gain <= -1:
        return f"{1 - gain:.1f} × as long"
    return share_text(gain) if gain >= 0 else f"−{share_text(-gain)}"
