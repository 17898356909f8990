"""Several ranks in one file: nothing of one is taken for something of another."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.kineto import Kineto
from tests.trace.reference import names
from workbench.trace import read
from workbench.trace.table import Trace
from workbench.trace.writing import write_merged

BASE = 1_700_000_000_000_000_000


def of_rank(rank: int, *, base_ns: int | None = BASE, start: float = 1000) -> Trace:
    """A rank alone on device 0: as others, it numbers its launches from 1."""
    made = Kineto(gpu=True)
    made.header["distributedInfo"] = {"rank": rank, "world_size": 2}
    if base_ns is None:
        del made.header["baseTimeNanoseconds"]
    else:
        made.header["baseTimeNanoseconds"] = base_ns
    made.launched(f"kernel{rank}", call=(start, 5), kernel=(start + 10, 20), correlation=1)
    made.python("train.py(1): step", start, 50, ident=1, parent=None)
    made.python("model.py(2): forward", start, 40, ident=2, parent=1)
    flow = {"id": 1, "pid": 100, "tid": 100, "cat": "ac2g"}
    made.events += [
        {"ph": "s", "ts": start, **flow},
        {"ph": "f", "ts": start + 10, **flow},
        {"ph": "M", "name": "process_name", "pid": 100, "tid": 0, "args": {"name": "python"}},
    ]
    return read(json.dumps(made.document()).encode())


def merged(tmp_path: Path, *traces: Trace) -> tuple[Trace, tuple[str, ...], dict[str, Any]]:
    written = write_merged(traces, tmp_path / "all.json")
    document = json.loads((tmp_path / "all.json").read_text())
    return read(tmp_path / "all.json"), written.notes, document


def test_every_launch_still_has_one_kernel(tmp_path: Path) -> None:
    found, _, _ = merged(tmp_path, of_rank(0), of_rank(1))
    events = found.events
    launched = events.correlation[events.correlation >= 0]

    assert sorted(np.unique(launched, return_counts=True)[1].tolist()) == [2, 2]
    assert sorted(np.unique(found.flows.id, return_counts=True)[1].tolist()) == [2, 2]


def test_python_frames_keep_their_parents(tmp_path: Path) -> None:
    found, _, _ = merged(tmp_path, of_rank(0), of_rank(1))
    events, told = found.events, names(found)
    steps = [i for i, name in enumerate(told) if name.startswith("train")]
    inner = [i for i, name in enumerate(told) if name.startswith("model")]

    assert len(set(events.python_id[steps].tolist())) == 2
    assert set(events.python_parent[inner].tolist()) == set(events.python_id[steps].tolist())


def test_processes_carry_the_rank_and_devices_are_told_apart(tmp_path: Path) -> None:
    found, _, document = merged(tmp_path, of_rank(0), of_rank(1))
    processes = {lane.process: lane.pid for lane in found.lanes}

    assert set(processes) == {
        "rank 0 python 100",
        "rank 1 python 100",
        "rank 0 device 0",
        "rank 1 device 1",
    }
    assert len(set(processes.values())) == 4
    assert [device["id"] for device in document["deviceProperties"]] == [0, 1]
    assert {device["name"] for device in document["deviceProperties"]} == {"NVIDIA A100-SXM4-40GB"}


def test_ranks_are_placed_by_unix_time(tmp_path: Path) -> None:
    """Rank 1 began 30 µs after rank 0, though both count from their own zero."""
    found, notes, _ = merged(tmp_path, of_rank(1, base_ns=BASE + 30_000), of_rank(0))
    start = dict(zip(names(found), found.events.ts.tolist(), strict=True))

    assert start["kernel1"] - start["kernel0"] == 30_000
    assert found.base_ns == BASE + 1_000_000
    assert notes == ()


def test_clocks_that_cannot_be_aligned_are_said(tmp_path: Path) -> None:
    found, notes, document = merged(tmp_path, of_rank(0), of_rank(1, base_ns=None, start=7))
    start = dict(zip(names(found), found.events.ts.tolist(), strict=True))

    assert start["kernel1"] == start["kernel0"]
    assert found.base_ns is None
    assert "no Unix time is told by rank 1" in notes[0]
    assert document["workbench_merged"]["notes"] == list(notes)


def test_recordings_of_different_moments_are_said(tmp_path: Path) -> None:
    _, notes, _ = merged(tmp_path, of_rank(0), of_rank(1, base_ns=BASE + 5 * 10**9))

    assert "do not overlap: one ends 5.0 s before" in notes[0]


@pytest.mark.parametrize("ranks", [(3, 3), (0, 0, 0)])
def test_traces_that_claim_one_rank_get_numbers(tmp_path: Path, ranks: tuple[int, ...]) -> None:
    found, _, _ = merged(tmp_path, *(of_rank(rank) for rank in ranks))
    processes = {lane.process for lane in found.lanes}

    assert {f"trace {number} python 100" for number in range(len(ranks))} <= processes
