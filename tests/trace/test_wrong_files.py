"""Files that are no traces: named for what they are, with what to do."""

import gzip
import io
import json
import pickle
import sqlite3
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.kineto import Kineto
from workbench import trace
from workbench.errors import TraceError


def zipped(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("_", "."), data)
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "meaning"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"\0" * 500, "zero bytes"),
        (b"NVIDIA Tegra Profiler Report 2024@5.\n\x0bLocal\x12", "nsys export --type sqlite"),
        (b"NVR\0" + bytes(40), "Nsight Compute"),
        (b"<!DOCTYPE html><html>404</html>", "web page"),
        (b"\n<html>", "web page"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "git lfs pull"),
        (b"\x89PNG\r\n\x1a\n", "image"),
        (b"hello, this is a log line\n", "plain text"),
        (pickle.dumps({"segments": []}), "never unpickled"),
        (b"\x0a\xc7\xa9\x01\x12\x0e/host:metadata", "xplane"),
        (b"\x28\xb5\x2f\xfd\x04", "zstd"),
        ('{"traceEvents": []}'.encode("utf-16"), "UTF-16"),
        (b"\x7fELF\x02\x01", "program"),
        (b"{}", "empty JSON object"),
        (b"[]", "no events"),
        (b"[1, 2, 3]", "not of events"),
        (b'[[0, 1, 2, "x"], [1, 1, 2, "y"]]', "memory timeline"),
        (b'{"schema": "1.0.2-chakra.0.0.4", "nodes": []}', "execution trace"),
        (b'{"model_type": "bert", "layers": 12}', "configuration"),
        (b'{"a": 1, "b": 2}', "keys: a, b"),
        (b'{"a": 1, "b": ', "cut JSON: it ends at byte 14"),
        (b'{"traceEvents": null}', "no list"),
        (b'{"traceEvents": {"a": 1}}', "no list"),
        (b'"traceEvents"', "plain text"),
        (gzip.compress(b""), "empty"),
        (gzip.compress(b"<html>"), "web page"),
        (b"\x1f\x8b\x08\x00broken", "no text that can be unpacked"),
        (zipped(), "zip"),
        (zipped(a_json=b"{}", b_json=b"{}"), "2 candidates"),
        (b"PK\x03\x04 and nothing else", "zip archive that cannot be opened"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # packed bytes hold the time
)
def test_what_it_is_instead(data: bytes, meaning: str) -> None:
    with pytest.raises(TraceError, match=meaning):
        trace.read(data)
    with pytest.raises(TraceError, match=meaning):
        trace.read(io.BytesIO(data))


def test_a_database_is_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "report1.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("create table t (a)")
    database.close()
    with pytest.raises(TraceError, match=r"report1\.sqlite is no trace but an SQLite database"):
        trace.read(path)


@pytest.mark.parametrize(
    ("name", "meaning"),
    [("", "is a folder"), ("missing.json", "No such file"), ("a\0b", "null"), ("x" * 5000, "long")],
)
def test_paths_that_cannot_be_opened(tmp_path: Path, name: str, meaning: str) -> None:
    with pytest.raises(TraceError, match=meaning):
        trace.read(str(tmp_path / name))


@pytest.mark.parametrize("source", [None, 5, {"traceEvents": []}, io.StringIO("{}")])
def test_sources_that_are_none(source: Any) -> None:
    with pytest.raises(TraceError, match=r"path|mode 'rb'"):
        trace.read(source)


def test_nothing_in_a_pickle_runs(tmp_path: Path) -> None:
    touched = tmp_path / "touched"

    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return touched.touch, ()

    with pytest.raises(TraceError):
        trace.read(pickle.dumps(Bomb()))
    assert not touched.exists()


def test_a_zip_with_one_trace_is_read_whatever_lies_beside_it(tmp_path: Path) -> None:
    made = Kineto()
    made.op("a", 1, 1)
    text = json.dumps(made.document()).encode()
    for data in (text, gzip.compress(text)):
        whole = zipped(trace_json=data, readme_txt=b"hello")
        assert len(trace.read(whole).events) == 1
        path = tmp_path / "misnamed.json"
        path.write_bytes(whole)
        assert len(trace.read(path).events) == 1
        assert len(trace.read(gzip.compress(whole)).events) == 1


def test_a_zip_knows_traces_by_the_endings_that_a_tar_knows() -> None:
    made = Kineto()
    made.op("a", 1, 1)
    text = json.dumps(made.document()).encode()
    for name, data in (("trace_pfw_gz", gzip.compress(text)), ("trace_sqlite", text)):
        assert len(trace.read(zipped(**{name: data, "readme_txt": b"hello"})).events) == 1
    both = zipped(trace_json=text, trace_xplane_pb=b"the profile that it was made from")
    assert len(trace.read(both).events) == 1


def test_the_name_does_not_decide_but_is_told(tmp_path: Path) -> None:
    made = Kineto()
    made.op("a", 1, 1)
    packed = tmp_path / "rank_3.gz"
    made.write(packed)
    plain = packed.rename(tmp_path / "rank_3.trace.json")
    found = trace.read(plain)
    assert (found.source, found.rank) == ("rank_3.trace.json", 3)


def test_progress_is_told_and_files_are_closed(tmp_path: Path) -> None:
    made = Kineto()
    for i in range(20_000):
        made.op("a", i, 1)
    seen: list[int] = []
    path = made.write(tmp_path / "t.json")
    trace.read(path, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] > path.stat().st_size / 2
