"""Zip archives whose tables of contents lie: a Trace or a TraceError, whatever byte is wrong."""

import io
import zipfile

import pytest

from tests.trace.layouts import one_line
from tests.trace.reference import codes
from workbench import trace
from workbench.errors import TraceError

EVENT = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 5, "dur": 2}
DOCUMENT = {"traceEvents": [EVENT, EVENT | {"ts": 9}]}
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


def archive(method: int) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as written:
        written.writestr("trace.json", one_line(DOCUMENT))
    return file.getvalue()


@pytest.mark.parametrize("method", METHODS)
def test_a_whole_archive_of_any_method_is_read(method: int) -> None:
    assert len(trace.read(archive(method)).events) == 2


@pytest.mark.parametrize("method", METHODS)
def test_any_wrong_byte_gives_a_trace_or_a_trace_error(method: int) -> None:
    whole = archive(method)
    refused = 0
    for place in range(len(whole)):
        for value in {0xFF, whole[place] ^ 1} - {whole[place]}:
            data = whole[:place] + bytes([value]) + whole[place + 1 :]
            try:
                trace.read(data)
            except TraceError:
                refused += 1
    assert refused  # at least the magic number, which stands in the first four bytes


def test_an_entry_that_begins_before_the_file_is_found_by_its_own_header() -> None:
    # The directory says where it begins; a start 4 bytes too late puts the entry at -4.
    whole = bytearray(archive(zipfile.ZIP_STORED))
    end = whole.rindex(b"PK\x05\x06")
    start = int.from_bytes(whole[end + 16 : end + 20], "little")
    whole[end + 16 : end + 20] = (start + 4).to_bytes(4, "little")

    found = trace.read(bytes(whole))
    assert len(found.events) == 2
    assert codes(found) == {"repaired_json": 1}
