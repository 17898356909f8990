"""A Run as tables in a terminal."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO, cast

from rich.console import Console, Group
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from workbench.cli.memory import print_memory
from workbench.cli.ranks import rank_name, ranks_table
from workbench.figures.palette import category
from workbench.findings import Finding
from workbench.findings.gain import bound
from workbench.pages.findings import NONE, SILENT, mark, where
from workbench.units import NOT_MEASURED, count_text, share_text, time_text

if TYPE_CHECKING:
    from workbench.run.run import Run

STYLES = {"critical": "bold red", "warning": "yellow", "info": "cyan"}
ROWS = 10
GAPS = 3
LEAST_GAP = 0.01
"""Share of all idle time from which a gap is worth a line."""
LONGEST_NAME = 60
LEAST_NAME = 16
"""Names are shortened to what a terminal has room for, but not below this."""


def print_run(run: Run, console: Console | None = None) -> None:
    """Print the verdict, findings, breakdown, steps, devices, largest kernels and operators."""
    from workbench.run.verdict import grave, step_sentence, verdict

    console = console or plain_console()
    document = run.summary.document
    console.print(Text(printable(run.name), style="bold"))
    said = step_sentence(run) if grave(run) else verdict(run)
    if said:
        console.print(Text(printable(said)))
    for note in run.notes:
        console.print(Text(printable(note), style="dim"))
    if run.findings or SILENT not in said:
        console.print(_findings(run.findings))
    ranks = document["ranks"]
    if run.ranks[0].snapshot is not None:
        print_memory(run, console)
        return
    if len(ranks) > 1:
        _print_ranks(ranks, run, console)
        return
    for part in _rank(ranks[0], told=run.notes, width=console.width):
        console.print(part)


def _print_ranks(ranks: Sequence[Mapping[str, Any]], run: Run, console: Console) -> None:
    """All ranks beside each other, what fails its checks, and one rank in full."""
    table = ranks_table(ranks)
    if table is not None:
        console.print(table)
    shown = next((rank for rank in ranks if rank["rank"] == run.worst_rank), ranks[0])
    for rank in ranks:
        failed = [v for v in rank["trust"]["violations"] if v["message"] not in run.notes]
        if failed and rank is not shown:
            console.print(Text(f"\nrank {rank_name(rank)}", style="bold"))
            console.print(_trust(rank["trust"], run.notes))
    title = f"\nRank {rank_name(shown)} in full"
    console.print(Text(f"{title} · {shorten(shown['source'], console.width - len(title) - 3)}"))
    for part in _rank(shown, told=run.notes, width=console.width):
        console.print(part)
    console.print(Text("\nThe other ranks in full: --json, or analyze one file.", style="dim"))


class _Stripped:
    """A text stream without the blanks that fill a line: nobody sees them, and a diff does."""

    def __init__(self, to: TextIO) -> None:
        self._to, self._rest = to, ""
        self.encoding = getattr(to, "encoding", None)

    def write(self, text: str) -> int:
        """Write the lines that are complete."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._to.write(f"{line.rstrip(' ')}\n")
        return len(text)

    def flush(self) -> None:
        """Write the rest as well."""
        self._to.write(self._rest.rstrip(" "))
        self._rest = ""
        self._to.flush()


def plain_console() -> Console:
    """A console for standard output; piped, its lines end where their text does."""
    if sys.stdout.isatty():
        return Console()
    return Console(file=cast("TextIO", _Stripped(sys.stdout)))


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


def _rank(rank: Mapping[str, Any], told: Sequence[str], width: int) -> list[Any]:
    parts = [_trust(rank["trust"], told), _overview(rank)]
    for device in rank["devices"]:
        if device["breakdown_us"] is not None:
            title = f"Where the window of device {device['index']} goes"
            parts.append(_breakdown(title, device["breakdown_us"]))
    if rank["host_breakdown_us"] is not None:
        title = "Where the loop's thread spends the window"
        parts.append(_breakdown(title, rank["host_breakdown_us"]))
    if gaps := [gap for gap in rank["idle_gaps"] or () if gap["share"] >= LEAST_GAP][:GAPS]:
        parts.append(_gaps(gaps, width))
    if rank["kernels"]:
        parts.append(_kernels(rank["kernels"], width))
    if rank["operators"]:
        parts.append(_operators(rank["operators"], width))
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
    elif steps["time_us"]["median"] is None:
        said = "a time from completion to completion needs two"
        table.add_row("steps", Text(f"{steps['count']}, median {NOT_MEASURED}: {said}"))
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
    from workbench.run.breakdowns import shown_parts

    parts = shown_parts(parts)
    total = sum(value or 0.0 for value in parts.values())
    table = _table(title, ("part", "left"), ("time", "right"), ("share", "right"))
    for name, value in sorted(parts.items(), key=lambda item: -(item[1] or 0.0)):
        if value == 0:
            continue
        share = "" if value is None else share_text(value / total)
        table.add_row(category(name).label, _us(value), share)
    return Padding(table, (1, 0, 0, 0))


def _gaps(gaps: Sequence[Mapping[str, Any]], width: int) -> Padding:
    """The longest idle gaps: what the host was in for most of each, and its first cause."""
    several = len({gap["device"] for gap in gaps}) > 1
    cells = []
    for gap in gaps:
        cause, us = next(iter(gap["causes_us"].items()))
        part = "" if us == gap["length_us"] else f" {share_text(us / gap['length_us'])}"
        cells.append(
            (
                *([str(gap["device"])] if several else []),
                "-" if gap["step"] is None else str(gap["step"]),
                _us(gap["length_us"]),
                share_text(gap["share"]),
                f"{category(cause).label}{part}",
            )
        )
    columns = ("the host meanwhile", *(["device"] if several else []), "step", "gap", "of idle")
    hosts = [
        NOT_MEASURED
        if next(iter(gap["causes_us"])) == "unknown"
        else next(iter(gap["host_us"]), "")
        for gap in gaps
    ]
    title = "Longest idle gaps (run.gaps has more of them)"
    return _named(title, (*columns, "cause"), hosts, cells, width)


def _kernels(rows: list[Mapping[str, Any]], width: int) -> Padding:
    largest = sorted(rows, key=lambda r: -r["total_us"])[:ROWS]
    several = len({row["device"] for row in rows}) > 1
    cells = [
        (
            *([str(row["device"])] if several else []),
            row["family"],
            count_text(row["calls"]),
            _us(row["total_us"]),
            share_text(row["share"]),
        )
        for row in largest
    ]
    columns = ("kernel", *(["device"] if several else []), "family", "calls", "total", "share")
    return _named("Kernels", columns, [row["name"] for row in largest], cells, width)


def _operators(rows: list[Mapping[str, Any]], width: int) -> Padding:
    largest = sorted(rows, key=lambda r: -r["host_self_us"])[:ROWS]
    cells: list[tuple[str, ...]] = [
        (
            count_text(row["calls"]),
            _us(row["host_self_us"]),
            _us(row["host_total_us"]),
            _us(row["device_us"]),
        )
        for row in largest
    ]
    columns: tuple[str, ...] = ("operator", "calls", "host alone", "with nested", "device")
    if all(row["device_us"] is None for row in largest):
        cells, columns = [row[:-1] for row in cells], columns[:-1]
    return _named("Operators", columns, [row["name"] for row in largest], cells, width)


def _named(
    title: str,
    columns: Sequence[str],
    foreign: Sequence[str],
    cells: Sequence[tuple[str, ...]],
    width: int,
) -> Padding:
    """A table of names and values, the names as long as the terminal is wide."""
    first, *heads = columns
    taken = [max([len(head), *(len(row[i]) for row in cells)]) for i, head in enumerate(heads)]
    room = min(LONGEST_NAME, max(LEAST_NAME, width - sum(taken) - 2 * len(heads)))
    values = [(head, "left" if head in ("family", "cause") else "right") for head in heads]
    table = _table(title, (first, "left"), *values)
    for name, row in zip(foreign, cells, strict=True):
        table.add_row(Text(shorten(name, room), no_wrap=True), *row)
    return Padding(table, (1, 0, 0, 0))


def printable(text: str) -> str:
    """Foreign text for a terminal: what would move the cursor or hide is made visible."""
    return "".join(c if c.isprintable() else "�" for c in text)


def shorten(name: str, room: int = LONGEST_NAME) -> str:
    """A long name with its middle left out, so that both ends can still be told apart."""
    clean = printable(name)
    if len(clean) <= room:
        return clean
    head = (room - 1) // 2
    return f"{clean[:head]}…{clean[-(room - 1 - head) :]}"


def _table(title: str, *columns: tuple[str, str]) -> Table:
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for name, justify in columns:
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    return table


def _us(value: float | None) -> str:
    return NOT_MEASURED if value is None else time_text(value * 1000)
