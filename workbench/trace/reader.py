"""Reads any trace file into the columnar event table."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from workbench.errors import TraceError
from workbench.trace.assemble import assemble
from workbench.trace.filetypes import HOW_TO_GET_A_TRACE, wrong_array, wrong_kind
from workbench.trace.formats import read_other_format
from workbench.trace.formats.chrome_lanes import with_lanes_of_devices
from workbench.trace.frames import Frames
from workbench.trace.gather import Gatherer
from workbench.trace.header import open_header, read_header
from workbench.trace.locate import Place, locate
from workbench.trace.notes import Notes
from workbench.trace.parse import Parser
from workbench.trace.source import SIZE_LIMIT, Source, open_source
from workbench.trace.table import Trace, Violation

_NONE_WHOLE = "No event is whole before that. Copy the file again."
_NO_EVENTS = (
    "It holds no events. The profiler was never active: with a schedule, call prof.step() until "
    "its active steps are over before the trace is exported."
)


def read(
    source: str | Path | bytes | BinaryIO,
    *,
    size_limit: int = SIZE_LIMIT,
    progress: Callable[[int], None] | None = None,
) -> Trace:
    """Read a trace: Kineto or Chrome JSON of any era, or another format of ``trace.formats``.

    Plain JSON, gzip (also of several members, whatever the name ends in) and a zip with one trace
    are read alike. What is broken is mended where only one reading makes sense; that, and what had
    to be left out, stands in ``Trace.violations``.

    Args:
        source: A path, the bytes themselves, or a binary file.
        size_limit: Most bytes of uncompressed text to read.
        progress: Called with the number of bytes of text read so far, about once a megabyte.

    Raises:
        TraceError: It is no trace, too large, or damaged beyond repair; says where and what to do.
    """
    opened, head = open_source(source, size_limit)
    with opened:
        other = read_other_format(opened, head, source)
        if other is not None:
            packing = Notes(opened.name)
            packing.packing(opened.given, opened.damage)
            return replace(other, violations=(*packing.violations(0), *other.violations))
        kind = wrong_kind(head)
        if opened.damage.stopped and not head.strip():
            raise TraceError(
                f"{opened.name} holds no text that can be unpacked: {opened.damage.stopped}. Copy "
                "or download the file again."
            )
        if kind is not None:
            reason = f" ({opened.damage.stopped})" if opened.damage.stopped else ""
            raise TraceError(f"{opened.name} is {kind}{reason} {HOW_TO_GET_A_TRACE}")
        return _read(opened, progress)


def _read(source: Source, progress: Callable[[int], None] | None) -> Trace:
    frames, notes, gatherer = Frames(source), Notes(source.name), Gatherer()
    place = locate(frames)
    parser = Parser(frames, gatherer, notes, place.form)
    if parser.run(progress):
        header = read_header(frames, place.header, notes)
        if place.form == "lines":
            notes.repaired("list of events that is closed and never opened", 0)
    else:
        header = open_header(place.header, notes)
        _note_open_end(frames, place, notes, parser.read)
    notes.repaired("text in args", 0, gatherer.arguments.mended)
    if parser.others:
        notes.passed_over(parser.others)
    notes.packing(frames.offset + frames.end - 1, source.damage)
    if not any(count for phase, count in gatherer.phases.items() if phase != "M"):
        if parser.others or (place.form != "object" and not gatherer.phases):
            raise _no_events(source.name, parser, notes)
        meaning = _NONE_WHOLE if notes.end else _NO_EVENTS
        notes.add(Violation(code="no_events", message=meaning))
    return with_lanes_of_devices(assemble(source.name, gatherer, header, notes))


def _note_open_end(frames: Frames, place: Place, notes: Notes, read: int) -> None:
    offset = frames.offset + frames.end - 1
    if frames.source.damage.stopped:
        return
    if place.form == "object" or (place.form == "array" and not read):
        notes.truncated(offset, "the list of events is never closed")
    elif place.form == "array":
        notes.repaired("unclosed array", offset)
    else:
        notes.repaired("one event after another instead of one document", 0)


def _no_events(name: str, parser: Parser, notes: Notes) -> TraceError:
    notes.violations(0)
    if parser.others and not parser.read:
        return TraceError(f"{name} is no trace but {wrong_array(None)} {HOW_TO_GET_A_TRACE}")
    meaning = f"{notes.end} {_NONE_WHOLE}" if notes.end else _NO_EVENTS
    return TraceError(f"{name} is no trace: {meaning}")
