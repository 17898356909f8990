"""The cache of read traces: exactly the same, only for the same file, and never in the way."""

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from tests.kineto import Kineto
from tests.trace.documents import documents
from tests.trace.tables import assert_same
from workbench.errors import TraceError
from workbench.trace import cache, open_trace, read
from workbench.trace.arrow import from_batch, to_batch
from workbench.trace.table import Trace

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def user_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of this test, for traces of any size."""
    folder = tmp_path / "user cache"
    monkeypatch.setenv(cache.VARIABLE, str(folder))
    monkeypatch.setattr(cache, "LEAST_WORTH_BYTES", 0)
    return folder / "traces"


def some_trace(name: str = "aten::mm") -> Kineto:
    made = Kineto(gpu=True)
    made.step(1, 0, 100)
    made.op(name, 5, 10, **{"Input Dims": [[2, 3]], "External id": 1})
    made.launched("gemm", call=(6, 1), kernel=(20, 5), correlation=1)
    return made


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return some_trace().write(tmp_path / "rank3.json.gz")


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run.json").write_text("{}")
    some_trace().write(folder / "rank0.trace.json.gz")
    return folder


def is_mapped(trace: Trace) -> bool:
    """A mapped column cannot be written to; one that was just read can."""
    return not trace.events.ts.flags.writeable


def caches(folder: Path) -> list[Path]:
    return sorted(folder.iterdir()) if folder.is_dir() else []


@given(documents())
@settings(max_examples=60, deadline=None)
def test_a_trace_comes_back_exactly(document: dict[str, Any]) -> None:
    trace = read(json.dumps(document).encode())
    sink = pa.BufferOutputStream()
    batch = to_batch(trace, "key")
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)

    found = from_batch(pa.ipc.open_file(sink.getvalue()).get_batch(0))

    assert_same(trace, found)


@pytest.mark.traces
@pytest.mark.parametrize(
    ("largest", "least"), [(100_000, 60), pytest.param(10**9, 100, marks=pytest.mark.soak)]
)
def test_real_traces_come_back_exactly(traces_root: Path, largest: int, least: int) -> None:
    compared = 0
    for path in sorted(traces_root.rglob("*.json*")):
        if path.stat().st_size > largest:
            continue
        try:
            trace = read(path)
        except TraceError:
            continue
        assert_same(trace, from_batch(to_batch(trace, "key")))
        compared += 1
    assert compared > least


def test_the_second_open_is_mapped_and_the_same(trace: Path, user_cache: Path) -> None:
    first, second = open_trace(trace), open_trace(trace)

    assert [is_mapped(first), is_mapped(second)] == [False, True]
    assert_same(first, second)
    assert second.rank == 3
    assert len(caches(user_cache)) == 1


def test_a_column_that_the_trace_lacks_takes_no_room_in_memory(trace: Path) -> None:
    open_trace(trace)

    assert open_trace(trace).events.stack.strides == (0,)


def test_progress_is_told_only_while_reading(trace: Path) -> None:
    told: list[int] = []
    open_trace(trace, progress=told.append)
    assert told
    told.clear()
    open_trace(trace, progress=told.append)
    assert not told


def test_without_cache_none_is_read_or_written(trace: Path, user_cache: Path) -> None:
    assert not is_mapped(open_trace(trace, cache=False))
    assert caches(user_cache) == []


def test_in_a_run_folder_it_stands_beside_the_trace(run_folder: Path, user_cache: Path) -> None:
    path = run_folder / "rank0.trace.json.gz"
    open_trace(path)

    assert (run_folder / "rank0.events.arrow").is_file()
    assert is_mapped(open_trace(path))
    assert caches(user_cache) == []


def test_other_programs_can_read_the_tables(run_folder: Path) -> None:
    open_trace(run_folder / "rank0.trace.json.gz")
    batch = pa.ipc.open_file(str(run_folder / "rank0.events.arrow")).get_batch(0)
    events = pa.Table.from_struct_array(batch["events"].values)

    assert events["dur"].to_pylist() == [100_000, 10_000, 1_000, 5_000]
    assert set(batch["names"].values.to_pylist()) >= {"aten::mm", "gemm"}


def test_small_traces_from_elsewhere_are_not_kept(
    trace: Path, user_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "LEAST_WORTH_BYTES", 1 << 18)
    open_trace(trace)

    assert caches(user_cache) == []


def test_a_changed_trace_is_read_anew(run_folder: Path) -> None:
    path = run_folder / "rank0.trace.json.gz"
    open_trace(path)
    some_trace("aten::bmm").write(path)

    found = open_trace(path)

    assert "aten::bmm" in found.names
    assert is_mapped(open_trace(path))


def test_same_size_and_time_do_not_make_the_same_file(run_folder: Path) -> None:
    path = run_folder / "rank0.trace.json"
    some_trace("aten::aa").write(path)
    told = path.stat()
    open_trace(path)
    some_trace("aten::bb").write(path)
    os.utime(path, ns=(told.st_atime_ns, told.st_mtime_ns))
    assert path.stat().st_size == told.st_size

    assert "aten::bb" in open_trace(path).names


def test_a_cache_by_another_reader_does_not_count(
    trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_trace(trace)
    monkeypatch.setattr(cache, "_reader", lambda: "a later version")

    assert not is_mapped(open_trace(trace))
    assert is_mapped(open_trace(trace))


def foreign(path: Path) -> None:
    table = pa.table({"ts": [1, 2]})
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


def of_another_trace(path: Path) -> None:
    other = read(json.dumps(some_trace("other").document()).encode())
    batch = to_batch(other, "the key of another trace")
    with pa.ipc.new_file(str(path), batch.schema) as writer:
        writer.write_batch(batch)


def flipped(path: Path) -> None:
    """One bit of the durations, which no structure gives away."""
    data = bytearray(path.read_bytes())
    where = data.index(np.int64(100_000).tobytes())
    data[where] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    "harm",
    [
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(path.read_bytes()[:-100]),
        lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
        lambda path: path.write_bytes(b"\x80\x04\x95" + b"not arrow" * 100),
        foreign,
        of_another_trace,
        flipped,
    ],
    ids=["empty", "cut", "half", "no arrow", "foreign", "of another trace", "flipped bit"],
)
def test_a_damaged_cache_is_rebuilt_silently(run_folder: Path, harm: Any) -> None:
    path, kept = run_folder / "rank0.trace.json.gz", run_folder / "rank0.events.arrow"
    first = open_trace(path)
    harm(kept)

    found = open_trace(path)

    assert not is_mapped(found)
    assert_same(first, found)
    assert is_mapped(open_trace(path))


@pytest.mark.parametrize("seed", range(40))
def test_random_damage_is_noticed(run_folder: Path, seed: int) -> None:
    path, kept = run_folder / "rank0.trace.json.gz", run_folder / "rank0.events.arrow"
    first = open_trace(path)
    data = bytearray(kept.read_bytes())
    rng = np.random.default_rng(seed)
    for where in rng.integers(0, len(data), 4).tolist():
        data[where] ^= int(rng.integers(1, 256))
    kept.write_bytes(data)

    assert_same(first, open_trace(path))


def test_a_folder_in_the_way_does_not_fail(trace: Path, user_cache: Path) -> None:
    user_cache.parent.mkdir()
    user_cache.write_text("a file where the folder should be")

    assert len(open_trace(trace).events) == 4


def test_a_run_folder_that_cannot_be_written_uses_the_user_cache(
    run_folder: Path, user_cache: Path
) -> None:
    (run_folder / "rank0.events.arrow").mkdir()  # root ignores permissions, not this
    path = run_folder / "rank0.trace.json.gz"
    open_trace(path)

    assert is_mapped(open_trace(path))
    assert len(caches(user_cache)) == 1


def test_a_full_disk_does_not_fail_and_leaves_nothing(
    trace: Path, user_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Any, partial: Path) -> None:
        partial.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache, "_write", full)

    assert len(open_trace(trace).events) == 4
    assert caches(user_cache) == []


def test_an_interrupt_leaves_no_half_made_cache(
    trace: Path, user_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: Any, partial: Path) -> None:
        partial.write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(cache, "_write", interrupted)

    with pytest.raises(KeyboardInterrupt):
        open_trace(trace)
    assert caches(user_cache) == []


def test_the_user_cache_drops_what_was_not_used_for_longest(
    tmp_path: Path, user_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [some_trace(f"aten::m{n}").write(tmp_path / f"{n}.json") for n in range(3)]
    for age, path in zip((300, 200, 100), paths, strict=True):
        open_trace(path)
        newest = max(caches(user_cache), key=lambda kept: kept.stat().st_mtime_ns)
        os.utime(newest, (1_700_000_000 - age,) * 2)
    one = max(kept.stat().st_size for kept in caches(user_cache))
    open_trace(paths[0])  # used now, so the second is the oldest

    monkeypatch.setattr(cache, "USER_CACHE_BYTES", 3 * one)
    open_trace(some_trace("aten::m3").write(tmp_path / "3.json"))

    assert [is_mapped(open_trace(path)) for path in (paths[0], paths[2])] == [True, True]
    assert not is_mapped(open_trace(paths[1]))


def test_left_overs_of_killed_processes_are_removed(trace: Path, user_cache: Path) -> None:
    user_cache.mkdir(parents=True)
    old = user_cache / ".x.events.arrow.99999-abcd.partial"
    old.write_bytes(b"half")
    os.utime(old, (0, 0))

    open_trace(trace)

    assert not old.exists()


def test_what_is_no_file_is_read_without_a_cache(tmp_path: Path, user_cache: Path) -> None:
    with pytest.raises(TraceError, match="missing"):
        open_trace(tmp_path / "missing.json")
    assert caches(user_cache) == []


def _open_many(path: str, results: Any) -> None:
    counts = {len(open_trace(path).events) for _ in range(20)}
    results.put(counts)


def test_processes_at_once_all_get_the_whole_trace(run_folder: Path) -> None:
    path = run_folder / "rank0.trace.json.gz"
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    workers = [context.Process(target=_open_many, args=(str(path), results)) for _ in range(2)]
    for worker in workers:
        worker.start()
    found = [results.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()

    assert found == [{4}, {4}]
    assert sorted(p.name for p in run_folder.iterdir()) == [
        "rank0.events.arrow",
        "rank0.trace.json.gz",
        "run.json",
    ]


@pytest.mark.traces
@pytest.mark.parametrize("largest", [160_000, pytest.param(10**9, marks=pytest.mark.soak)])
def test_answers_from_a_mapped_trace_are_the_same(
    traces_root: Path, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import workbench as wb

    monkeypatch.setattr(cache, "LEAST_WORTH_BYTES", 0)
    found = sorted(traces_root.rglob("*.pt.trace.json.gz"))
    paths = [path for path in found if path.stat().st_size <= largest][:12]
    assert len(paths) > 3
    for path in paths[: 4 if largest < 10**9 else None]:
        first, second = wb.open(path), wb.open(path)
        assert is_mapped(second.trace)
        assert first.summary.to_json() == second.summary.to_json()
        assert repr(second)


def test_a_mapped_open_imports_nothing_heavy(trace: Path) -> None:
    """Pandas would take longer to import than a large trace to map."""
    open_trace(trace)
    code = (
        "import sys\nfrom workbench.trace import cache\ncache.LEAST_WORTH_BYTES = 0\n"
        f"found = cache.open_trace({str(trace)!r})\n"
        "print(found.events.ts.flags.writeable, 'pandas' in sys.modules, "
        "'pyarrow.compute' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["False"] * 3
