"""Finds where the events begin, and refuses what holds none."""

import string
from dataclasses import dataclass

import msgspec

from workbench.errors import TraceError
from workbench.trace.filetypes import EMPTY, HOW_TO_GET_A_TRACE, wrong_array, wrong_object
from workbench.trace.frames import Frames
from workbench.trace.layout import TRACE_EVENTS, is_top_level, looks_like_events

BOM = b"\xef\xbb\xbf"
HEADER_LIMIT = 1 << 26
_BLANK = b" \t\r\n"
_SHOWN = 20
_LETTERS = string.ascii_letters.encode()


@dataclass(frozen=True, kw_only=True)
class Place:
    """How the events are held, and the text of the header before them."""

    form: str
    """``object`` (under "traceEvents"), ``array`` (bare), or ``lines`` (one after another)."""
    header: bytes = b""


def locate(frames: Frames) -> Place:
    """Move the frames to the first event.

    Raises:
        TraceError: There are no events; says what the file is instead.
    """
    frames.fill()
    if frames.text(1, 4) == BOM:
        frames.drop(4)
        frames.fill()
    start = _first_visible(frames, 1)
    first = frames.text(start, start + 1)
    if first == b"[":
        return _array(frames, start + 1, Place(form="array"))
    if first == b"{":
        return _object(frames, start)
    if not first:
        raise _no_trace(frames, EMPTY, but="")
    found = frames.text(start, start + 40).decode("utf-8", "replace").strip()
    raise _no_trace(
        frames,
        f"plain text, not JSON: byte {frames.offset + start - 1:,} starts with {found!r} where "
        "'{' or '[' should be.",
    )


def _object(frames: Frames, start: int) -> Place:
    if looks_like_events(frames.text(start)):
        frames.drop(start)
        return Place(form="lines")
    searched = start
    while True:
        for match in TRACE_EVENTS.finditer(frames.buffer, searched, frames.end):
            header = frames.text(start, match.start())
            if not is_top_level(header):
                continue
            if match.end() == frames.end and not frames.ended:
                break
            if frames.text(match.end(), match.end() + 1) == b"[":
                return _array(frames, match.end() + 1, Place(form="object", header=header))
            raise _no_trace(frames, _no_list(frames, match.end()))
        if frames.ended or frames.end > HEADER_LIMIT:
            raise _no_trace(frames, _meaning(frames, start))
        searched = max(start, frames.end - 64)
        if frames.end == len(frames.buffer):
            frames.grow()
        frames.fill()


def _array(frames: Frames, start: int, place: Place) -> Place:
    start = _first_visible(frames, start)
    while start >= frames.end and not frames.ended:
        frames.drop(start)
        frames.fill()
        start = _first_visible(frames, 1)
    first = frames.text(start, start + 1)
    empty = first == b"n" and place.form == "object"  # a null, which the parser passes over
    if first not in (b"{", b"]", b"", b",") and not empty:
        raise _no_trace(frames, wrong_array([] if first == b"[" else first.decode("latin-1")))
    frames.drop(start)
    return place


def _first_visible(frames: Frames, start: int) -> int:
    while start < frames.end and frames.buffer[start] in _BLANK:
        start += 1
        if start == frames.end and not frames.ended:
            frames.drop(start)
            frames.fill()
            start = 1
    return start


def _meaning(frames: Frames, start: int) -> str:
    if not frames.ended:
        return f'JSON without "traceEvents" in its first {HEADER_LIMIT >> 20} MiB.'
    text = frames.text(start)
    try:
        keys = list(msgspec.json.Decoder(dict[str, msgspec.Raw]).decode(text))
    except RecursionError:
        return "JSON that is nested too deeply for a trace."
    except msgspec.DecodeError as error:
        return _damaged(text, frames.offset + start - 1, error)
    return wrong_object(keys)


def _no_list(frames: Frames, start: int) -> str:
    at = f"byte {frames.offset + start - 1:,}"
    shown = frames.text(start, start + _SHOWN).decode("utf-8", "replace")
    if not shown:
        return f'cut JSON: it ends at {at}, right behind "traceEvents". Copy the file again.'
    return f'JSON whose "traceEvents" is no list: at {at} stands {shown!r}.'


def _damaged(text: bytes, offset: int, error: msgspec.DecodeError) -> str:
    """Where JSON without ``traceEvents`` is broken, what was found there, and what to do."""
    reason, _, place = str(error).removeprefix("JSON is malformed: ").partition(" (byte ")
    if not place:
        return (
            f"cut JSON: it ends at byte {offset + len(text):,}, before any "
            '"traceEvents". Copy the file again; else the profiler was interrupted as it wrote.'
        )
    at = int(place.rstrip(")"))
    at -= len(text[:at]) - len(text[:at].rstrip(_LETTERS))  # it names a place inside a word
    shown = text[at : at + _SHOWN].decode("utf-8", "replace")
    return (
        f'damaged JSON without "traceEvents": at byte {offset + at:,} stands {shown!r} '
        f"({reason}). Copy or export the file again."
    )


def _no_trace(frames: Frames, meaning: str, but: str = "no trace but ") -> TraceError:
    damage = frames.source.damage.stopped
    reason = f" ({damage[0].upper()}{damage[1:]}.)" if damage else ""
    return TraceError(f"{frames.source.name} is {but}{meaning}{reason} {HOW_TO_GET_A_TRACE}")
