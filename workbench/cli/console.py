"""A Run as tables in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from workbench.findings import Finding
from workbench.pages.findings import NONE, bound, mark, where
from workbench.units import NOT_MEASURED, count_text, share_text, time_text

if TYPE_CHECKING:
    from workbench.run.run import Run

STYLES = {"critical": "bold red", "warning": "yellow", "info": "cyan"}
ROWS = 10
LONGEST_NAME = 60


def print_run(run: Run, console: Console | None = None) -> None:
    """Print the verdict, findings, breakdown, steps, devices, largest kernels and operators."""
    from workbench.run.view import limiting, step_sentence, verdict

    console = console or Console()
    document = run.summary.document
    console.print(Text(printable(run.name), style="bold"))
    said = step_sentence(run) if limiting(run) else verdict(run)
    if said:
        console.print(Text(printable(said)))
    for note in run.notes:
        console.print(Text(printable(note), style="dim"))
    console.print(_findings(run.findings))
    several = len(document["ranks"]) > 1
    for rank in document["ranks"]:
        if several:
            number = "?" if rank["rank"] is None else rank["rank"]
            title = f"rank {number} · {printable(rank['source'])}"
            console.print(Text(f"\n{title}", style="bold"))
        for part in _rank(rank, told=run.notes):
            console.print(part)


def _findings(findings: tuple[Finding, ...]) -> Group:
    if not findings:
        return Group(Text(NONE, style="dim"))
    lines: list[Text | Padding] = []
    for finding in findings:
        head = Text(f"{mark(finding)} {finding.code} ", style=STYLES[finding.severity])
        head.append(printable(finding.title), style="default")
        about = where(finding)
        if about:
            head.append(f" [{about}]", style="dim")
        lines.append(head)
        gain = bound(finding)
        advice = f"→ {finding.advice}" + (f" Gain: {gain}." if gain else "")
        lines.append(Padding(Text(printable(advice), style="dim"), (0, 0, 0, 2)))
    return Group(*lines)


def _rank(rank: Mapping[str, Any], told: Sequence[str]) -> list[Any]:
    parts = [_trust(rank["trust"], told), _overview(rank)]
    for device in rank["devices"]:
        if device["breakdown_us"] is not None:
            title = f"Where the window of device {device['index']} goes"
            parts.append(_breakdown(title, device["breakdown_us"]))
    if rank["host_breakdown_us"] is not None:
        title = "Where the loop's thread spends the window"
        parts.append(_breakdown(title, rank["host_breakdown_us"]))
    if rank["kernels"]:
        parts.append(_kernels(rank["kernels"]))
    if rank["operators"]:
        parts.append(_operators(rank["operators"]))
    return parts


def _trust(trust: Mapping[str, Any], told: Sequence[str]) -> Group:
    """A line a failed check, in yellow where it makes numbers void; not what was told above."""
    return Group(
        *(
            Text(f"{v['code']}: {printable(v['message'])}", style="yellow" if v["voids"] else "dim")
            for v in trust["violations"]
            if v["message"] not in told
        )
    )


def _overview(rank: Mapping[str, Any]) -> Table:
    table = _table("", ("", "left"), ("", "left"))
    table.show_header = False
    steps, wait = rank["steps"], rank["input"]
    if steps is None:
        table.add_row("steps", Text("the trace marks none (see --infer-steps)"))
    else:
        median = _us(steps["time_us"]["median"])
        inferred = " (inferred from what repeats)" if steps["source"] == "inferred" else ""
        row = f"{steps['count']}{inferred}, median {median} under the profiler"
        table.add_row("steps", row)
    if wait is not None:
        share = _us(wait["exposed_us"])
        table.add_row("input wait", f"{_us(wait['wait_us'])}, exposed {share}")
    void = {name for v in rank["trust"]["violations"] for name in v["voids"]}
    for device in rank["devices"]:
        row = _device(device, certain=void.isdisjoint(("devices", "idle")))
        table.add_row(f"device {device['index']}", Text(row))
    if not rank["devices"] and "devices" in void:
        table.add_row("device", Text(NOT_MEASURED))
    return table


def _device(device: Mapping[str, Any], *, certain: bool) -> str:
    """Busy and idle time in the window, of the recording where no step holds work."""
    span = device["window"] or device["recording"]
    name = printable(device["name"] or device["type"] or "")
    if span is None:
        return f"{NOT_MEASURED} · {name}"
    time = span["time"]
    busy = time["busy_us"] / time["span_us"] if time["span_us"] else None
    row = f"busy {share_text(busy)}, idle {_us(time['idle_us'])} of {_us(time['span_us'])}"
    row += "" if device["window"] else " of the whole recording"
    row += "" if certain else ", not certain (see above)"
    return f"{row} · {name}" if name else row


def _breakdown(title: str, parts: Mapping[str, float | None]) -> Padding:
    from workbench.run.view import shown_parts

    parts = shown_parts(parts)
    total = sum(value or 0.0 for value in parts.values())
    table = _table(title, ("part", "left"), ("time", "right"), ("share", "right"))
    for name, value in sorted(parts.items(), key=lambda item: -(item[1] or 0.0)):
        if value == 0:
            continue
        share = "" if value is None else share_text(value / total)
        table.add_row(name.replace("_", " "), _us(value), share)
    return Padding(table, (1, 0, 0, 0))


def _kernels(rows: list[Mapping[str, Any]]) -> Padding:
    table = _table(
        "Kernels",
        ("kernel", "left"),
        ("family", "left"),
        ("calls", "right"),
        ("total", "right"),
        ("share", "right"),
    )
    for row in sorted(rows, key=lambda r: -r["total_us"])[:ROWS]:
        table.add_row(
            Text(shorten(row["name"])),
            row["family"],
            count_text(row["calls"]),
            _us(row["total_us"]),
            share_text(row["share"]),
        )
    return Padding(table, (1, 0, 0, 0))


def _operators(rows: list[Mapping[str, Any]]) -> Padding:
    table = _table(
        "Operators",
        ("operator", "left"),
        ("calls", "right"),
        ("host alone", "right"),
        ("host with children", "right"),
        ("device", "right"),
    )
    for row in sorted(rows, key=lambda r: -r["host_self_us"])[:ROWS]:
        table.add_row(
            Text(shorten(row["name"])),
            count_text(row["calls"]),
            _us(row["host_self_us"]),
            _us(row["host_total_us"]),
            _us(row["device_us"]),
        )
    return Padding(table, (1, 0, 0, 0))


def printable(text: str) -> str:
    """Foreign text for a terminal: what would move the cursor or hide is made visible."""
    return "".join(c if c.isprintable() else "�" for c in text)


def shorten(name: str) -> str:
    """A long name with its middle left out, so that both ends can still be told apart."""
    clean = printable(name)
    if len(clean) <= LONGEST_NAME:
        return clean
    half = (LONGEST_NAME - 1) // 2
    return f"{clean[:half]}…{clean[-half:]}"


def _table(title: str, *columns: tuple[str, str]) -> Table:
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for name, justify in columns:
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    return table


def _us(value: float | None) -> str:
    return NOT_MEASURED if value is None else time_text(value * 1000)
