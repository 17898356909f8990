"""Compressed files and archives: read where the standard library can, else named."""

import bz2
import gzip
import io
import json
import lzma
import os
import tarfile
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kineto import Kineto
from tests.trace.reference import codes
from workbench import trace
from workbench.errors import TraceError
from workbench.trace import pipes

pytestmark = pytest.mark.slow


def text(events: int = 3) -> bytes:
    made = Kineto()
    for at in range(events):
        made.op("aten::mm", 10 * at, 5)
    return json.dumps(made.document()).encode()


def tar(mode: str = "w", **members: bytes) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            entry = tarfile.TarInfo(name.replace("__", "/").replace("_", "."))
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return file.getvalue()


def lzma_alone(data: bytes) -> bytes:
    return lzma.compress(data, format=lzma.FORMAT_ALONE)


PACKERS = [gzip.compress, bz2.compress, lzma.compress, lzma_alone, zlib.compress]


@pytest.mark.parametrize("pack", PACKERS)
def test_compressed_traces_are_read(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(pack(text(5000)))
    assert len(trace.read(path).events) == 5000
    assert len(trace.read(pack(gzip.compress(text()))).events) == 3


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_stream_of_several_parts_is_one(pack: Callable[[bytes], bytes]) -> None:
    whole = text(1000)
    parts = pack(whole[:40_000]) + pack(whole[40_000:])
    assert len(trace.read(parts).events) == 1000
    assert len(trace.read(parts + b"\0" * 100).events) == 1000


@pytest.mark.parametrize("pack", PACKERS)
def test_a_cut_stream_gives_what_is_before_the_cut(pack: Callable[[bytes], bytes]) -> None:
    made = Kineto()
    for at in range(30_000):  # names that do not compress into one block
        made.op(f"op{at * 7919 % 99991}", 10 * at, 5)
    packed = pack(json.dumps(made.document()).encode())
    found = trace.read(packed[: len(packed) * 2 // 3])
    assert 0 < len(found.events) < 30_000
    assert "truncated" in codes(found)


@pytest.mark.parametrize("pack", PACKERS)
def test_damage_in_the_middle_is_told_or_refused(pack: Callable[[bytes], bytes]) -> None:
    packed = bytearray(pack(text(300)))
    for place in range(0, len(packed), 11):
        damaged = bytes(packed[:place]) + bytes([packed[place] ^ 0x55]) + bytes(packed[place + 1 :])
        try:
            found = trace.read(damaged)
        except TraceError as error:
            assert "trace given as bytes" in str(error)  # noqa: PT017
        else:
            assert len(found.events) <= 300


def test_bombs_stop_at_the_limit() -> None:
    bomb = bz2.compress(b'{"traceEvents": [' + b" " * 50_000_000)
    with pytest.raises(TraceError, match="size_limit"):
        trace.read(bomb, size_limit=1_000_000)


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
def test_a_tar_with_one_trace_is_read(mode: str, tmp_path: Path) -> None:
    data = tar(mode, README_md=b"hello", logs__rank0_json=text(), notes_txt=b"x" * 30_000)
    assert len(trace.read(data).events) == 3
    path = tmp_path / "rank3.tar"
    path.write_bytes(data)
    assert trace.read(path).rank == 3
    assert len(trace.read(tar(mode, trace_json_gz=gzip.compress(text()))).events) == 3


def test_a_tar_with_several_traces_says_which() -> None:
    with pytest.raises(TraceError, match=r"several traces \(the first is a\.json\)"):
        trace.read(tar(a_json=text(), b_json=text()))


@pytest.mark.parametrize(
    ("data", "meaning"),
    [
        (tar(), "zero bytes"),
        (tar(readme_md=b"hello"), r"without a trace \(it holds: readme\.md\)"),
        (tar(a_json=text())[:400], "tar archive that cannot be read"),
        (b"\x04\x22\x4d\x18" + text(), "lz4"),
        (b"\x1f\x9d\x90" + text(), "uncompress"),
        (b"Rar!\x1a\x07\x01\x00" + text(), "RAR"),
        (b"\x28\xb5\x2f\xfd" + text(), "unzstd"),
        (b"BZh and nothing else", "bzip2"),
        (b"\xfd7zXZ\0 and nothing else", "no text that can be unpacked"),
    ],
)
def test_what_cannot_be_read_is_named(data: bytes, meaning: str) -> None:
    with pytest.raises(TraceError, match=meaning):
        trace.read(data)


@pytest.mark.parametrize(
    ("encoding", "meaning"),
    [
        ("utf-16", "UTF-16"),
        ("utf-16-le", "UTF-16"),
        ("utf-16-be", "UTF-16"),
        ("utf-32", "UTF-32"),
        ("utf-32-le", "UTF-32"),
        ("utf-32-be", "UTF-32"),
    ],
)
def test_wide_text_is_named_with_the_remedy(encoding: str, meaning: str) -> None:
    for document in (text().decode(), "[]", '[ {"ph": "X"} ]'):
        with pytest.raises(TraceError, match=f"{meaning}.*save it as UTF-8"):
            trace.read(document.encode(encoding))


def test_a_pipe_that_somebody_writes_to_is_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(gzip.compress(text(2000)),))
    writer.start()
    assert len(trace.open_trace(path).events) == 2000
    writer.join()


def test_a_pipe_that_nobody_writes_to_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipes, "WAIT_S", 0.1)
    path = tmp_path / "trace.json"
    os.mkfifo(path)
    with pytest.raises(TraceError, match=r"nobody writes to: nothing came within 0\.1 s"):
        trace.read(path)


@pytest.mark.parametrize(
    ("device", "meaning"), [("zero", "zero bytes"), ("null", "empty"), ("full", "zero bytes")]
)
def test_devices_that_never_end_are_named(device: str, meaning: str) -> None:
    with pytest.raises(TraceError, match=meaning):
        trace.read(Path("/dev") / device)
