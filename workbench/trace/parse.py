"""Parses the events: in large pieces where the text is sound, one by one where it is not."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from workbench.trace import repair
from workbench.trace.frames import CLOSE, OPEN, Frames
from workbench.trace.gather import Gatherer
from workbench.trace.layout import BETWEEN, CONTINUES, EVENT_START, Layout, learn
from workbench.trace.lenient import to_event
from workbench.trace.notes import Notes
from workbench.trace.schema import EXACT, FAST, UNTYPED, USUAL, WHOLE, end_of_first
from workbench.trace.stamps import NeedsExactStampsError

_CLOSING = re.compile(rb"\}[ \t\r\n]*+,?[ \t\r\n]*+\]")
_EXPECT_EVERY = 32
_LONGEST_MENDED = 1 << 16
_MOST_JOINED = 64
"""Pieces put together again where what looked like two events was one with nested objects."""
_BETWEEN_EVENTS = b" \t\r\n,"
_BRACKETS = b"]} \t\r\n"
_WINDOW = 1 << 14
_STRAY = "stray text between records"
_MORE_LENIENT = {USUAL: FAST, WHOLE: EXACT}


class Taken(NamedTuple):
    """How far a piece was read, and whether the array ended there."""

    end: int
    closed: bool


class Found(NamedTuple):
    """One event that was read by itself."""

    event: Any
    mended: str
    pieces: int = 1
    closed_at: int | None = None
    """Position behind the bracket that closes the array, where it stands in this piece."""
    stray_at: int | None = None
    """Position behind the event where neither another one nor the end of the array follows."""


class Unparsable(Exception):  # noqa: N818
    """This piece is not what it seemed; nothing of it was taken."""


class Parser:
    """Walks over the events and hands them to the columns."""

    def __init__(self, frames: Frames, gatherer: Gatherer, notes: Notes, form: str) -> None:
        self._frames = frames
        self._gatherer = gatherer
        self._notes = notes
        self._form = form
        self._family = USUAL
        self._layout: Layout | None = None
        self._lines = False
        self.read = 0
        self.others = 0
        """Elements of the array that are no objects."""

    def run(self, progress: Callable[[int], None] | None = None) -> bool:
        """Read all events; False when the array never ended."""
        frames, pieces = self._frames, 0
        while True:
            frames.fill()
            if progress is not None:
                progress(frames.offset)
            if frames.ended and not frames.text().strip(_BETWEEN_EVENTS):
                return False
            if self._layout is None and not self._lines:
                text = frames.text()
                self._layout = learn(text)
                self._lines = self._layout is None and BETWEEN.search(text) is not None
            try:
                taken = self._take_lines() if self._lines else self._take_array()
                self._check_text(taken.end)
            except Unparsable:
                taken = self._salvage()
            if taken.end == 1 and not taken.closed:
                if frames.ended:
                    return False
                frames.grow()
                continue
            frames.drop(taken.end)
            if taken.closed:
                return True
            pieces += 1
            if frames.source.size and frames.source.taken and pieces % _EXPECT_EVERY == 1:
                self._gatherer.expect(min(1.0, frames.source.taken / frames.source.size))

    def _check_text(self, end: int) -> None:
        """Note bytes that are no UTF-8 where the parser looks at none: in unknown keys and values.

        A key that they have altered is unknown, and its value is lost.
        """
        frames = self._frames
        if frames.buffer.isascii():
            return
        try:
            str(frames.view[1:end], "utf-8")
        except UnicodeDecodeError as error:
            self._notes.repaired("bytes that are not UTF-8", frames.offset + error.start)

    def _take_array(self) -> Taken:
        frames = self._frames
        cut = None
        if not frames.ended:
            cut = self._layout.cut(frames.buffer, frames.end) if self._layout else None
            if cut is None:
                raise Unparsable
        frames.buffer[0] = OPEN
        if cut is None:
            return self._take_closed(frames.end)
        comma, frames.buffer[cut] = frames.buffer[cut], CLOSE
        try:
            self._add_array(frames.view[: cut + 1])
        except (msgspec.DecodeError, RecursionError) as error:
            frames.buffer[cut] = comma
            close = _end_of_array(error, frames)
            if close is None:
                raise Unparsable from None
            return self._take_closed(close)
        return Taken(cut + 1, closed=False)

    def _take_closed(self, end: int) -> Taken:
        view = self._frames.view
        try:
            self._add_array(view[:end])
        except (msgspec.DecodeError, RecursionError) as error:
            close = _end_of_array(error, self._frames)
            if close is None or close == end:
                raise Unparsable from None
            return self._take_closed(close)
        return Taken(end, closed=True)

    def _take_lines(self) -> Taken:
        frames = self._frames
        end = frames.end if frames.ended else frames.buffer.rfind(b"\n", 1, frames.end)
        if end <= 1:
            raise Unparsable
        try:
            events = EXACT.event.decode_lines(frames.view[1:end])
        except (msgspec.DecodeError, RecursionError):
            raise Unparsable from None
        self._add(events)
        if self._form != "lines":
            self._notes.repaired("missing comma", frames.offset, len(events))
        return Taken(end, closed=False)

    def _add_array(self, view: memoryview) -> None:
        try:
            events = self._family.events.decode(view)
            self._gatherer.add(events, self._family)
        except NeedsExactStampsError:
            self._family = WHOLE
            self._add_array(view)
            return
        except msgspec.ValidationError:
            if self._family in _MORE_LENIENT:
                self._family = _MORE_LENIENT[self._family]
                self._add_array(view)
                return
            events = self._to_events(UNTYPED.decode(view))
            self._gatherer.add(events, EXACT)
        self.read += len(events)

    def _to_events(self, values: Any) -> list[Any]:
        if not isinstance(values, list):
            raise Unparsable
        self.others += sum(not isinstance(value, dict) for value in values)
        return [event for value in values if (event := to_event(value)) is not None]

    def _add(self, events: list[Any]) -> None:
        self._gatherer.add(events, EXACT)
        self.read += len(events)

    def _salvage(self) -> Taken:
        """Read event by event what does not parse as a whole."""
        frames = self._frames
        text = frames.text()
        bounds = [(0, 0, True)]
        bounds += [(m.start() + 1, m.end(), bool(m.group(1))) for m in BETWEEN.finditer(text)]
        bounds[0] = (0, len(text) - len(text.lstrip(_BETWEEN_EVENTS)), True)
        self._pass_over(b"," + text[: bounds[0][1]], 0)
        starts = [bound[1] for bound in bounds]
        ends = [bound[0] for bound in bounds[1:]] + [len(text)]
        events: list[Any] = []
        index, last = 0, len(starts) - 1
        while index <= last:
            start = starts[index]
            offset = frames.offset + start
            found = self._read_one(text, starts, ends, index)
            pieces = _MOST_JOINED if found is None else found.pieces
            closed = found is not None and found.closed_at is not None
            if not frames.ended and not closed and index + pieces > last:
                break
            if not bounds[index][2] and self._form != "lines":
                self._notes.repaired("missing comma", offset)
            if found is None:
                close = self._lost(text[start : ends[index]], offset, at_end=index == last)
                if close is not None:
                    self._add(events)
                    return Taken(1 + start + close, closed=True)
                index += 1
                continue
            if found.event is not None:
                events.append(found.event)
            index += found.pieces
            closed_at, mended = found.closed_at, found.mended
            follows = index <= last and bounds[index][2]
            if follows and not text[closed_at : ends[index - 1]].strip(_BRACKETS):
                mended = _STRAY if closed_at is not None else mended
                closed_at = None
            if mended:
                self._notes.repaired(mended, offset)
            if found.stray_at is not None:
                closed_at = self._read_strays(text, found.stray_at, ends[index - 1], events)
            if closed_at is not None:
                self._add(events)
                return Taken(1 + closed_at, closed=True)
        self._add(events)
        used = len(text) if index > last else starts[index]
        return Taken(1 + used, closed=False)

    def _read_strays(self, text: bytes, start: int, end: int, events: list[Any]) -> int | None:
        """Read the events among text that stands between two; tells where the array ends."""
        at = start
        while match := EVENT_START.search(text, at, end):
            event, length = _decode_first(text[match.start() : min(end, match.start() + _WINDOW)])
            if length is None:
                event, length = _decode_first(text[match.start() : end])
            if length is None:
                self._pass_over(text[at : match.end()], at)
                at = match.end()
                continue
            self._pass_over(text[at : match.start()], at)
            if event is not None:
                events.append(event)
            at = match.start() + length
        close = text.find(b"]", at, end)
        self._pass_over(text[at : end if close < 0 else close], at)
        return None if close < 0 else close + 1

    def _pass_over(self, text: bytes, at: int) -> None:
        """Note text that is no event; a brace in it was one that cannot be read."""
        offset = self._frames.offset + at
        if b"{" in text:
            self._notes.unreadable(offset + text.index(b"{"), text[text.index(b"{") :], self.read)
        elif text.strip(_BETWEEN_EVENTS) or text.count(b",") > 1:
            self._notes.repaired(_STRAY, offset)

    def _lost(self, text: bytes, offset: int, *, at_end: bool) -> int | None:
        """Note a record that is beyond repair; tells where the array ends behind the last one."""
        close = _end_behind(text) if at_end else None
        if at_end and close is None:
            if text.strip(_BETWEEN_EVENTS):
                self._notes.truncated(offset + len(text), "the last record is incomplete")
            return None
        self._notes.unreadable(offset, text, self.read)
        return close

    def _read_one(
        self, text: bytes, starts: list[int], ends: list[int], index: int
    ) -> Found | None:
        start = starts[index]
        piece = text[start : ends[index]]
        found = _decode_one(piece, start, "")
        if found is not None:
            return found
        if not _is_cut(piece):
            starts = starts[: index + 1]
        for pieces in range(2, 2 + min(_MOST_JOINED, len(starts) - index - 1)):
            joined = text[start : ends[index + pieces - 1]]
            found = _decode_one(joined, start, "")
            if found is not None:
                return found._replace(pieces=pieces)
        if len(piece) > _LONGEST_MENDED:
            return None
        for attempt in repair.mend(piece):
            found = _decode_one(attempt.encode("utf-8", "replace"), start, "mended record")
            if found is not None:
                shift = len(attempt.encode("utf-8", "replace")) - len(piece)
                moved = {
                    field: max(start, place - shift)
                    for field in ("closed_at", "stray_at")
                    if (place := getattr(found, field)) is not None
                }
                return found._replace(**moved)
        return None


def _decode_one(piece: bytes, start: int, mended: str) -> Found | None:
    event, end = _decode_first(piece)
    if end is None:
        return None
    rest = piece[end:]
    after = rest.lstrip(_BETWEEN_EVENTS)
    blank = rest[: len(rest) - len(after)]
    at = start + end + len(blank)
    if blank.count(b",") > 1:
        mended = mended or _STRAY
    if after[:1] not in (b"]", b"}") or CONTINUES.match(after):
        return Found(event, mended, stray_at=at if after else None)
    if after[:1] == b"}":
        return Found(event, mended or "unclosed array", closed_at=at)
    return Found(event, mended or ("trailing comma" if b"," in blank else ""), closed_at=at + 1)


def _decode_first(piece: bytes) -> tuple[Any, int | None]:
    """The first event of a text and where it ends, or no end where it does not parse."""
    try:
        return _decode_event(piece), len(piece)
    except RecursionError:
        return None, None
    except msgspec.DecodeError as error:
        end = end_of_first(error)
    if end is None:
        return None, None
    try:
        return _decode_event(piece[:end]), end
    except (msgspec.DecodeError, RecursionError):
        return None, None


def _end_behind(text: bytes) -> int | None:
    """Position behind the first bracket after which a sound header, or nothing, follows."""
    for match in _CLOSING.finditer(text):
        rest = text[match.end() :]
        try:
            UNTYPED.decode(b'{"":0' + (rest if rest.strip() else b"}"))
        except (msgspec.DecodeError, RecursionError):
            continue
        return match.end()
    return None


def _is_cut(piece: bytes) -> bool:
    try:
        UNTYPED.decode(piece)
    except RecursionError:
        return False
    except msgspec.DecodeError as error:
        return "truncated" in str(error)
    return False


def _decode_event(piece: bytes) -> Any:
    try:
        return EXACT.event.decode(piece)
    except msgspec.ValidationError:
        return to_event(UNTYPED.decode(piece))


def _end_of_array(error: Exception, frames: Frames) -> int | None:
    """Position behind the bracket after which the parser found more text."""
    end = end_of_first(error)
    if end is None:
        return None
    close = frames.buffer.rfind(b"]", 0, end)
    if close < 0 or CONTINUES.match(frames.buffer, close + 1, frames.end):
        return None
    return close + 1
