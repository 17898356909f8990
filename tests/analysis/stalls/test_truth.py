"""Real loaders whose stages know their own clocks: every stage is found within 10 %."""

import itertools
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader

from tests.analysis.stalls.truth import Collate, Known, as_records, true_parts
from tests.recording.loader.driving import record
from workbench.analysis.intervals import Spans, total
from workbench.analysis.stalls.parts import Stalls
from workbench.analysis.stalls.split import split_stalls

BATCH, COUNT, MS = 4, 40, 1_000_000
STAGES = {"sleep": 0.006, "burn": 0.005, "collate": 0.016}
SUBSETS = [chosen for size in (1, 2, 3) for chosen in itertools.combinations(STAGES, size)]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="This DataLoader will create")
        yield


def measured(workers: int, **stages: Any) -> tuple[Stalls, dict[str, float]]:
    """The split of a loop that does nothing but wait, and the truth of the same waits."""
    collate = Collate(stages.pop("collate", 0))
    loader = DataLoader(Known(COUNT, **stages), BATCH, num_workers=workers, collate_fn=collate)
    batches, recorder = record(loader)
    waits = [(wait.start_ns, wait.end_ns) for wait in recorder.probe.waits[: len(batches)]]
    spans = Spans(*np.array(waits, np.int64).T)
    found = split_stalls(as_records(recorder), spans, spans)
    assert isinstance(found, Stalls)
    assert sum(ns or 0 for ns in found.by_part.values()) == total(spans)
    true: dict[str, float] = {}
    for batch, (start, end) in zip(batches, waits, strict=True):
        for part, ns in true_parts(batch, start, end).items():
            true[part] = true.get(part, 0.0) + ns
    return found, true


def between(found: Stalls, true: dict[str, float]) -> float:
    """What lay between the stages by the data's own clocks, less what the split names there.

    A batch that is done while a busy machine does not let the loop go on is in no stage of it.
    """
    named = sum(found.by_part[part] or 0 for part in ("startup", "starvation", "transfer"))
    return max(found.exposed_ns - sum(true.values()) - named, 0.0)


def agrees(workers: int, *parts: str, **stages: Any) -> None:
    """Within 10 %, and 3 % of the whole wait for what lies between the data's clocks and ours.

    On a busy machine a thread may be put aside just there, for long: one of three tries must agree.
    A stage that is told wrongly is wrong each time.
    """
    wrong: list[Any] = []
    for _ in range(3):
        found, true = measured(workers, **stages)
        told = {part: found.by_part[part] or 0 for part in parts}
        room = dict.fromkeys(parts, 0.03 * found.exposed_ns)
        if "other" in room:
            room["other"] += between(found, true)
        if all(abs(told[part] - true[part]) <= 0.1 * true[part] + room[part] for part in parts):
            return
        wrong.append((told, true))
    raise AssertionError(wrong)


@pytest.mark.parametrize("chosen", SUBSETS, ids="-".join)
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_sleep_and_computing_in_samples_and_in_collate(
    workers: int, chosen: tuple[str, ...]
) -> None:
    stages = {name: STAGES[name] for name in chosen}
    agrees(workers, "decode", "collate", "other", "oversubscription", "storage", **stages)


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("burn", [0, 0.01])
def test_a_read_from_storage_is_told_apart_from_decode(
    tmp_path: Path, workers: int, burn: float
) -> None:
    """The file leaves the page cache before every read, where its file system heeds the advice.

    Where it does not, the reads take next to nothing by the data's own clocks too; the same case
    by hand is ``test_the_same_wait_is_storage_or_decode_by_what_the_thread_did``.
    """
    file = tmp_path / "data.bin"
    file.write_bytes(np.random.default_rng(0).bytes(8_000_000))
    with file.open("rb+") as written:
        os.fsync(written.fileno())
    agrees(workers, "storage", "decode", burn=burn, file=file)
