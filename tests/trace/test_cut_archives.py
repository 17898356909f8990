"""Damage to what is packed: everything before it is read, and a wrong checksum costs nothing."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from tests.kineto import Kineto
from tests.trace.layouts import one_line
from tests.trace.reference import codes, names
from workbench import trace
from workbench.errors import TraceError
from workbench.trace.packed import PIECE

METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
COUNT = 3000


def document(events: int = COUNT) -> bytes:
    """Names that hardly repeat, so that little text is much when it is packed."""
    made = Kineto()
    for at in range(events):
        made.op(f"op{at * 7919 % 99991}", 10 * at, 5)
    return one_line(made.document())


TEXT = document()


def zipped(method: int, name: str = "trace.json", text: bytes = TEXT) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as written:
        written.writestr(name, text)
    return file.getvalue()


def streamed(method: int) -> bytes:
    """A zip written to a pipe: sizes and checksum stand behind the member."""

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise OSError

    file = Pipe()
    with zipfile.ZipFile(file, "w", method) as written:
        written.writestr("trace.json", TEXT)
    return file.getvalue()


def tarred() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        entry = tarfile.TarInfo("trace.json")
        entry.size = len(TEXT)
        archive.addfile(entry, io.BytesIO(TEXT))
    return file.getvalue()


def events_in(text: bytes) -> int:
    """Whole events of a text that stops anywhere."""
    return text.count(b'"dur": 5, "args": {}}')


class Stream:
    """A file that can only be read once, as a socket."""

    def __init__(self, data: bytes) -> None:
        self._file = io.BytesIO(data)

    def read(self, size: int = -1) -> bytes:
        return self._file.read(size)


@pytest.mark.parametrize("trailer", ["checksum", "length"])
@pytest.mark.parametrize("given", ["bytes", "path", "stream"])
def test_a_gzip_whose_end_is_wrong_is_read_whole(trailer: str, given: str, tmp_path: Path) -> None:
    whole = gzip.compress(TEXT, 0)
    wrong = whole[:-4] + b"abcd" if trailer == "length" else whole[:-8] + b"abcd" + whole[-4:]
    path = tmp_path / "trace.json.gz"
    path.write_bytes(wrong)
    stream = cast("BinaryIO", Stream(wrong))
    source = {"bytes": wrong, "path": path, "stream": stream}[given]
    found = trace.read(source)
    if given == "stream":  # of which the last piece cannot be read again
        assert set(codes(found)) == {"truncated"}
        assert len(found.events) >= events_in(TEXT[: len(TEXT) - PIECE])
    else:
        assert len(found.events) == COUNT
        assert codes(found) == {"wrong_checksum": 1}


def test_a_wrong_checksum_in_the_middle_does_not_end_a_gzip_of_several_members() -> None:
    half = len(TEXT) // 2
    first = gzip.compress(TEXT[:half], 1)
    found = trace.read(first[:-8] + b"abcd" + first[-4:] + gzip.compress(TEXT[half:], 1))
    assert len(found.events) == COUNT
    assert codes(found) == {"wrong_checksum": 1}


def test_a_zlib_stream_whose_end_is_wrong_is_read_whole() -> None:
    found = trace.read(zlib.compress(TEXT, 1)[:-4] + b"abcd")
    assert len(found.events) == COUNT
    assert codes(found) == {"wrong_checksum": 1}


@pytest.mark.parametrize("window", [31, 15], ids=["gzip", "zlib"])
def test_everything_before_damage_is_read_to_the_byte(window: int) -> None:
    packer = zlib.compressobj(1, zlib.DEFLATED, window)
    cut = len(TEXT) * 2 // 3
    sound = packer.compress(TEXT[:cut]) + packer.flush(zlib.Z_FULL_FLUSH)
    found = trace.read(sound + b"\7" * 4096)  # a block of the type that does not exist
    assert len(found.events) == events_in(TEXT[:cut])
    told = [v.message for v in found.violations if v.code == "truncated"]
    assert "damaged at their byte" in told[0]


def test_a_wrong_byte_near_the_end_of_xz_loses_little() -> None:
    packed = bytearray(lzma.compress(TEXT))
    packed[-60] ^= 1
    found = trace.read(bytes(packed))
    assert len(found.events) > COUNT * 0.9
    assert "truncated" in codes(found)


def test_a_wrong_byte_in_bzip2_scrambles_its_block_and_is_the_reason_told() -> None:
    packed = bytearray(bz2.compress(TEXT))
    packed[-30] ^= 1
    with pytest.raises(TraceError, match="The compressed data are damaged at their byte"):
        trace.read(bytes(packed))


@pytest.mark.parametrize("method", METHODS)
def test_a_zip_without_its_table_of_contents_is_read_whole(method: int) -> None:
    whole = zipped(method)
    for end in (whole.rindex(b"PK\x01\x02"), whole.rindex(b"PK\x05\x06"), len(whole) - 1):
        found = trace.read(whole[:end])
        assert len(found.events) == COUNT
        assert codes(found) == {"repaired_json": 1}


@pytest.mark.parametrize("make", [zipped, streamed])
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_cut_zip_gives_everything_before_the_cut(
    make: Callable[[int], bytes], method: int
) -> None:
    whole = make(method)
    start = whole.index(b"trace.json") + len("trace.json")
    for share in (0.2, 0.5, 0.9):
        cut = whole[: int(share * len(whole))]
        found = trace.read(cut)
        text = cut[start:]
        if method == zipfile.ZIP_DEFLATED:
            text = zlib.decompressobj(-15).decompress(text)
        assert len(found.events) == events_in(text)
        assert codes(found) == {"truncated": 1}


@pytest.mark.parametrize("method", METHODS)
def test_a_zip_whose_checksum_is_wrong_is_read_whole(method: int) -> None:
    whole = bytearray(zipped(method))
    entry = whole.rindex(b"PK\x01\x02")
    whole[entry + 16] ^= 1
    found = trace.read(bytes(whole))
    assert len(found.events) == COUNT
    assert codes(found) == {"wrong_checksum": 1}


def test_a_cut_zip_of_several_traces_is_refused_as_a_whole_one() -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as written:
        written.writestr("readme.txt", "hello")
        written.writestr("rank0.json", TEXT)
        written.writestr("rank1.json", TEXT)
    whole = file.getvalue()
    for data in (whole, whole[:-30]):
        with pytest.raises(TraceError, match=r"2 candidates for a trace \(rank0\.json, rank1"):
            trace.read(data)
    found = trace.read(whole[: whole.index(b"rank1.json") - 40])  # only the first is left
    assert len(found.events) >= COUNT - 1


def test_an_encrypted_zip_is_named() -> None:
    whole = bytearray(zipped(zipfile.ZIP_STORED))
    for sign, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        whole[whole.rindex(sign) + flags] |= 1
    with pytest.raises(TraceError, match=r"trace\.json is encrypted"):
        trace.read(bytes(whole))


def test_a_cut_tar_gives_everything_before_the_cut() -> None:
    whole = tarred()
    for share in (0.2, 0.5, 0.9):
        cut = whole[: int(share * len(TEXT))]
        found = trace.read(cut)
        assert len(found.events) == events_in(cut[512:])
        assert codes(found) == {"truncated": 1}


def test_damage_is_told_of_other_formats_too() -> None:
    lines = b"lane,kind,name,start_us,duration_us\n" + b"npu,kernel,k,1,2\n" * 200
    whole = gzip.compress(lines)
    assert codes(trace.read(whole)) == {}
    assert "wrong_checksum" in codes(trace.read(whole[:-8] + b"abcd" + whole[-4:]))
    assert "truncated" in codes(trace.read(whole[:-9]))


def test_an_archive_inside_a_compressed_file_is_read() -> None:
    assert len(names(trace.read(gzip.compress(zipped(zipfile.ZIP_DEFLATED))))) == COUNT
    assert (
        len(names(trace.read(zipped(zipfile.ZIP_STORED, "t.json.gz", gzip.compress(TEXT)))))
        == COUNT
    )
