"""``workbench convert``: a slice of a trace, several ranks in one file, counters for viewers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli.bars import reading_bar, writing_bar
from workbench.errors import TraceError
from workbench.units import bytes_text, count_text

if TYPE_CHECKING:
    from workbench.run.rank import RankAnalysis
    from workbench.trace.table import Trace

_STEPS = re.compile(r"(\d+)(?::(\d+))?")
_RANGE = re.compile(r"(\d+(?:\.\d+)?)?:(\d+(?:\.\d+)?)?")


def convert(
    source: Annotated[
        Path, typer.Argument(help="A trace, a Run folder, or a folder with one trace per rank.")
    ],
    out: Annotated[Path, typer.Argument(help="The new file; .json, or .json.gz for compressed.")],
    *,
    steps: Annotated[
        str | None,
        typer.Option(metavar="A:B", help="Only steps A to B, both kept, with their device work."),
    ] = None,
    range_us: Annotated[
        str | None,
        typer.Option(
            "--range", metavar="START:END", help="Only this time, in us after the first event."
        ),
    ] = None,
    merge: Annotated[
        list[Path] | None,
        typer.Option(help="Another trace to put into the same file; give it once per trace."),
    ] = None,
    counters: Annotated[
        bool, typer.Option("--counters", help="Add queue length, busy share and copy speed.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace OUT if it is there.")] = False,
) -> None:
    """Write a trace as Chrome JSON for viewers: a slice, several ranks in one file, with counters.

    A folder with one trace per rank becomes one file.
    """
    from workbench.run.source import open_run
    from workbench.trace.writing import cut, write_merged, write_trace
    from workbench.trace.writing.whole_file import check_target

    check_target(out, overwrite=force)
    kept = _steps(steps)
    start_ns, end_ns = _range(range_us)
    if steps is not None and range_us is not None:
        raise TraceError("give --steps or --range, not both.")
    runs = [open_run(path, watch=reading_bar) for path in (source, *(merge or ()))]
    traces = [_trace(rank, counters=counters) for run in runs for rank in run.ranks]
    if (kept, start_ns, end_ns) != (None, None, None):
        traces = [cut(t, start_ns=start_ns, end_ns=end_ns, steps=kept) for t in traces]
    with writing_bar(out, sum(len(trace.events) for trace in traces)) as progress:
        if len(traces) == 1:
            written = write_trace(traces[0], out, overwrite=force, progress=progress)
        else:
            written = write_merged(traces, out, overwrite=force, progress=progress)
    for note in written.notes:
        typer.echo(f"workbench: {note}", err=True)
    size = bytes_text(written.size_bytes)
    typer.echo(f"{out}: {count_text(written.records)} records, {size}")


def _trace(rank: RankAnalysis, *, counters: bool) -> Trace:
    from workbench.analysis.counter_tracks import with_counters

    return with_counters(rank.trace, rank.launches) if counters else rank.trace


def _steps(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    match = _STEPS.fullmatch(text)
    if match is None:
        raise TraceError(f"--steps {text!r} is no range of steps: write 3:5, or 3 for one step.")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise TraceError(f"--steps {text!r} ends before it starts: write {last}:{first}.")
    return first, last


def _range(text: str | None) -> tuple[int | None, int | None]:
    if text is None:
        return None, None
    match = _RANGE.fullmatch(text)
    if match is None or text == ":":
        raise TraceError(
            f"--range {text!r} is no range of time: write 1500:2500 (us after the first event), "
            "1500: to the end, or :2500 from the start."
        )
    start, end = (None if part is None else round(float(part) * 1000) for part in match.groups())
    return start, end
