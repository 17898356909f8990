"""Snapshots of all releases become one shape; what is none is refused by what is wrong with it."""

import contextlib
import gzip
import pickle
import time
from pathlib import Path
from typing import Any

import pytest

from tests.analysis.snapshots.made import MB, Made, frames
from workbench.analysis.snapshots import read_snapshot
from workbench.analysis.snapshots.snapshot import Action
from workbench.errors import TraceError

LINE = frames(("train.py", 7, "step"))


def test_actions_segments_and_stacks_are_read() -> None:
    made = Made()
    made.act("segment_alloc", 1000, 20 * MB, 5)
    made.alloc(1000, 2 * MB, 10, LINE)
    made.free(1000, 2 * MB, 30, LINE)
    made.segment(1000, 20 * MB, (2 * MB, False, None), (18 * MB, True, LINE))
    found = read_snapshot(made.data())
    assert found.action.tolist() == [
        *(Action.SEGMENT_ALLOC, Action.ALLOC, Action.FREE_REQUESTED, Action.FREE_COMPLETED)
    ]
    assert found.ts.tolist() == [0, 5000, 25_000, 25_000], "nanoseconds from the first action"
    assert found.stack.tolist() == [-1, 0, 0, 0], "stacks are told once"
    assert found.stacks[0][0].line == 7
    assert [block.live for block in found.segments[0].blocks] == [False, True]
    assert found.devices == (0,)


def test_torch_20_has_no_addresses_of_blocks_and_no_times() -> None:
    """Blocks follow each other from the start of their segment; stacks stand in a history."""
    block = {"size": 512, "state": "active_allocated"}
    first = {**block, "history": [{"addr": 4096, "real_size": 400, "frames": LINE}]}
    segment = {"device": 0, "address": 4096, "total_size": 2 * MB, "blocks": [first, block]}
    action = {"action": "alloc", "addr": 4096, "size": 512, "stream": 0, "frames": LINE}
    found = read_snapshot(pickle.dumps({"segments": [segment], "device_traces": [[action]]}))
    assert [each.address for each in found.segments[0].blocks] == [4096, 4608]
    assert [each.requested for each in found.segments[0].blocks] == [400, 512]
    assert found.segments[0].blocks[0].stack == 0
    assert not found.has_times
    assert found.base_ns is None


def test_torch_1_gave_the_segments_alone() -> None:
    segment = {"device": 1, "address": 0, "total_size": 512, "blocks": []}
    found = read_snapshot(pickle.dumps([segment], protocol=2))
    assert found.devices == (1,)
    assert len(found) == 0


def test_a_failure_tells_what_the_driver_had_left() -> None:
    made = Made()
    made.act("oom", 0, 300 * MB, 9, LINE, device_free=5 * MB)
    failure = read_snapshot(made.data()).failures[0]
    assert (failure.bytes, failure.device_free, failure.stack) == (300 * MB, 5 * MB, 0)


def test_a_compressed_one_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "snapshot.pickle.gz"
    path.write_bytes(gzip.compress(Made().data()))
    assert read_snapshot(path).source == "snapshot.pickle.gz"


def test_the_limit_is_said_and_can_be_raised() -> None:
    made = Made()
    for number in range(50):
        made.alloc(number * 512, 512, number)
    with pytest.raises(TraceError, match=r"1,000 bytes.*pass a larger size_limit"):
        read_snapshot(made.data(), size_limit=1000)
    assert len(read_snapshot(made.data(), size_limit=100_000)) == 50


@pytest.mark.parametrize(
    "value",
    [
        {"a": 1},
        [1, 2],
        {"segments": 5},
        {"segments": [{"address": -5, "total_size": 1}]},
        {"segments": [{"address": 2**70, "total_size": 1}]},
        {"segments": [{"address": 1, "total_size": "large"}]},
        {"segments": [], "device_traces": [[{"action": "alloc", "size": 1.5}]]},
        {"segments": [], "device_traces": [5]},
        {"segments": [], "device_traces": [[]] * 5000},
        {"segments": [], "device_traces": [[{"action": "alloc", "time_us": 2**62}]]},
        {"segments": [], "device_traces": [[{"action": "alloc", "size": 2**62}]]},
        {"segments": [{"address": 1, "total_size": 1, "device": 2**40}]},
    ],
)
def test_other_plain_values_are_no_snapshot(value: Any) -> None:
    with pytest.raises(TraceError, match=r"no memory snapshot|unknown kind"):
        read_snapshot(pickle.dumps(value, protocol=4))


def test_shared_parts_do_not_multiply_the_work() -> None:
    """A thousand times the same segment with a thousand times the same block: a million blocks."""
    block = {"size": 1, "state": "inactive"}
    segment = {"address": 1, "total_size": 1, "blocks": [block] * 1000}
    with pytest.raises(TraceError, match="more often than a snapshot does"):
        read_snapshot(pickle.dumps({"segments": [segment] * 1000}, protocol=4))


def doubled(times: int) -> list[Any]:
    """A list whose text has 2 to the power of ``times`` parts, in a file of some bytes a part."""
    value: list[Any] = []
    for _ in range(times):
        value = [value, value]
    return value


BOMB = doubled(60)
LINES = [{"name": "a", "filename": "b.py", "line": 1}] * 3000
BOMBS = {
    "a size": {"segments": [{"address": BOMB, "total_size": 1}]},
    "a kind": {"segments": [{"address": 1, "total_size": 1, "segment_type": BOMB}]},
    "an action": {"segments": [], "device_traces": [[{"action": BOMB, "size": 1}]]},
    "a line": {
        "segments": [],
        "device_traces": [[{"action": "alloc", "frames": [{"name": BOMB}]}]],
    },
    "a setting": {"segments": [], "allocator_settings": {"max_split_size": BOMB}},
    "a stack": {"segments": [], "device_traces": [[{"action": "alloc", "frames": LINES}]]},
}


@pytest.mark.parametrize("value", BOMBS.values(), ids=BOMBS)
def test_what_would_have_endless_text_is_left_out_or_refused_at_once(value: Any) -> None:
    """Written out, each has 2^60 parts: before, a file of 600 bytes took all memory."""
    began = time.thread_time()
    with contextlib.suppress(TraceError):
        assert "[[" not in repr(read_snapshot(pickle.dumps(value, protocol=4)))
    assert time.thread_time() - began < 1


def test_long_shared_names_are_cut() -> None:
    """2,000 actions with one name of a million characters: two million characters are not kept."""
    line = {"name": "x" * 1_000_000, "filename": "a.py", "line": 1}
    actions = [{"action": "alloc", "addr": i, "size": 1, "frames": [line]} for i in range(2000)]
    found = read_snapshot(pickle.dumps({"segments": [], "device_traces": [actions]}, protocol=4))
    assert [len(stack[0].name) for stack in found.stacks] == [4096]


def test_what_is_no_pickle_is_said() -> None:
    with pytest.raises(TraceError, match="is no pickle"):
        read_snapshot(b'{"traceEvents": []}')


@pytest.mark.traces
def test_all_snapshots_of_others_load(traces_root: Path) -> None:
    files = sorted(traces_root.glob("*/*snapshot.pickle*"))
    assert len(files) >= 4
    for file in files:
        found = read_snapshot(file)
        held = sum(b.bytes for s in found.segments for b in s.blocks if b.live)
        assert 0 < held <= sum(each.bytes for each in found.segments)
        assert found.has_times
        assert len(found.stacks)
