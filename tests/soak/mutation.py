"""Changes files as broken writers, disks and people do, with a sense for JSON and compression."""

import gzip
import re
import zlib
from random import Random

LARGEST = 1 << 16
_VALUE = re.compile(rb'"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null')
_EVENT = re.compile(rb'\{\s*"(?:ph|name|cat)"[^{}]*(?:\{[^{}]*\}[^{}]*)*\}')
_ODD = (
    *(b"null", b"true", b"-1", b"0", b"-0.0", b"NaN", b"Infinity", b"1e400", b"-1e-400", b"1.5"),
    *(b"9223372036854775807", b"-9223372036854775809", b"18446744073709551616", b"1" * 400),
    *(b"8796093022208.001", b"1700000000000000.123", b"9200000000000000", b'"12"', b'"0x1f"'),
    *(b"[]", b"{}", b"[[[1]]]", b'{"a":{"b":[1,2]}}', b'""', b'"\\ud800"', b'"\\u0000"'),
    *(b'"a\nb"', b'"a"b"', b'"C:\\x"', b'"\xff\xfe"', b"[" * 3000, b'{"a":' * 3000, b"/*x*/"),
    *(b'"X"', b'"B"', b'"E"', b'"s"', b'"f"', b'"i"', b'"C"', b'"M"', b'"?"', b'"kernel"'),
    *(b'"cpu_op"', b'"python_function"', b'"[memory]"', b'"ProfilerStep#1"', b'"x"' * 2),
)


def mutate(data: bytes, random: Random) -> bytes:
    """A changed copy of a file; of a compressed one, mostly what is inside is changed."""
    if data[:2] == b"\x1f\x8b" and random.random() < 0.7:
        inner = _unpacked(data)
        if inner:
            return gzip.compress(mutate(inner, random), 1, mtime=0)
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        data = random.choice(_CHANGES)(data, random)
    if random.random() < 0.02:
        data = gzip.compress(data, 1, mtime=0)
    return data[:LARGEST]


def _unpacked(data: bytes) -> bytes:
    try:
        return zlib.decompressobj(31).decompress(data, LARGEST)
    except zlib.error:
        return b""


def _span(data: bytes, random: Random, longest: int) -> tuple[int, int]:
    start = random.randrange(len(data) + 1)
    return start, min(len(data), start + random.randrange(1, longest))


def _set_bytes(data: bytes, random: Random) -> bytes:
    start, end = _span(data, random, 5)
    return data[:start] + random.randbytes(end - start) + data[end:]


def _drop(data: bytes, random: Random) -> bytes:
    start, end = _span(data, random, random.choice((3, 60, 2000)))
    return data[:start] + data[end:]


def _insert(data: bytes, random: Random) -> bytes:
    start, _ = _span(data, random, 2)
    added = random.choice((*_ODD, b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\n", b"\0"))
    return data[:start] + added + data[start:]


def _copy(data: bytes, random: Random) -> bytes:
    start, end = _span(data, random, random.choice((8, 400)))
    to = random.randrange(len(data) + 1)
    return data[:to] + data[start:end] * random.choice((1, 1, 3)) + data[to:]


def _cut(data: bytes, random: Random) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _odd_value(data: bytes, random: Random) -> bytes:
    found = list(_VALUE.finditer(data))
    if not found:
        return _insert(data, random)
    value = random.choice(found)
    new = random.choice((*_ODD, random.choice(found).group()))
    return data[: value.start()] + new + data[value.end() :]


def _many_events(data: bytes, random: Random) -> bytes:
    found = list(_EVENT.finditer(data))
    if not found:
        return _copy(data, random)
    event = random.choice(found)
    more = b",".join([event.group()] * random.choice((2, 2, 10, 100)))
    return data[: event.start()] + more + data[event.end() :]


_CHANGES = (
    *(_set_bytes, _drop, _insert, _copy, _cut),
    *(_odd_value, _odd_value, _odd_value, _many_events),
)
