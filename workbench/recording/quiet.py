"""Keep Kineto's own messages out of notebooks, and nothing else."""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

_KINETO = re.compile(rb"^([A-Z]+):\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \d+:\d+ ")
_HARMLESS = (b"External init callback must run in same thread",)
_BARE = b"ERROR: External init callback must run in same thread"
"""The same, as Kineto writes it where its logger is not there yet."""


@contextmanager
def quiet_kineto() -> Iterator[list[str]]:
    """Catch what C++ writes to the error stream while the profiler starts or stops.

    Kineto reads its log level only when torch is first imported, so the stream itself is turned
    aside for these few milliseconds. What is not Kineto's is written through afterwards; Kineto's
    warnings and errors (such as missing permission to count) come back in the list.
    """
    messages: list[str] = []
    try:
        kept = os.dup(2)
    except OSError:  # a process without an error stream has nothing to keep quiet
        yield messages
        return
    try:
        with tempfile.TemporaryFile() as aside:
            os.dup2(aside.fileno(), 2)
            try:
                yield messages
            finally:
                os.dup2(kept, 2)
                aside.seek(0)
                rest = b"".join(line for line in aside if not _is_kineto(line, messages))
                if rest:
                    os.write(2, rest)
    finally:
        os.close(kept)


def _is_kineto(line: bytes, messages: list[str]) -> bool:
    match = _KINETO.match(line)
    if match is None:
        return line.startswith(_BARE)
    if match.group(1) in (b"WARNING", b"ERROR") and not any(text in line for text in _HARMLESS):
        text = line[match.end() :].decode(errors="replace").strip()
        messages.append(text.partition("] ")[2] or text)
    return True
