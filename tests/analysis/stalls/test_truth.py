"""Real loaders whose stages know their own clocks.

Every stage is found within 10 %, which only a quiet machine shows: those tests are ``soak``. What
remains holds on any machine; the exact answers to loaders written by hand are in ``test_split``,
``test_fetch`` and ``test_simulated``.
"""

import itertools
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch.utils.data import DataLoader

from tests.analysis.stalls.truth import Collate, Known, as_records, held_parts, true_parts
from tests.recording.loader.driving import record
from workbench.analysis.intervals import Spans, total
from workbench.analysis.stalls.parts import Stalls
from workbench.analysis.stalls.split import split_stalls

pytestmark = pytest.mark.slow


BATCH, COUNT, MS = 4, 40, 1_000_000
STAGES = {"sleep": 0.012, "burn": 0.005, "collate": 0.016}
SUBSETS = [chosen for size in (1, 2, 3) for chosen in itertools.combinations(STAGES, size)]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="This DataLoader will create")
        yield


Parts = dict[str, float]


def measured(workers: int, **stages: Any) -> tuple[Stalls, Parts, Parts]:
    """The split of a loop that does nothing but wait, and the truth of the same waits.

    The last is what the next batches of the same workers may have kept back at most.
    """
    collate = stages.pop("collate", 0)
    collate = collate if isinstance(collate, Collate) else Collate(collate)
    loader = DataLoader(Known(COUNT, **stages), BATCH, num_workers=workers, collate_fn=collate)
    batches, recorder = record(loader)
    waits = [(wait.start_ns, wait.end_ns) for wait in recorder.probe.waits[: len(batches)]]
    spans = Spans(*np.array(waits, np.int64).T)
    found = split_stalls(as_records(recorder), spans, spans)
    assert isinstance(found, Stalls)
    assert sum(ns or 0 for ns in found.by_part.values()) == total(spans)
    true: Parts = {}
    held: Parts = {}
    for number, (batch, (start, end)) in enumerate(zip(batches, waits, strict=True)):
        _add(true, true_parts(batch, start, end))
        if workers and number + workers < len(batches):
            _add(held, held_parts(batch, batches[number + workers], end))
    return found, true, held


def _add(total: Parts, parts: Parts) -> None:
    for part, ns in parts.items():
        total[part] = total.get(part, 0.0) + ns


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
        found, true, held = measured(workers, **stages)
        told = {part: found.by_part[part] or 0 for part in parts}
        room = dict.fromkeys(parts, 0.03 * found.exposed_ns)
        if "other" in room:
            room["other"] += between(found, true)
        # Threads that hand a batch over wait for processors as well, where no data's clock looks.
        held["oversubscription"] = max(
            held.get("oversubscription", 0.0), found.exposed_ns - sum(true.values())
        )
        if all(
            -(0.1 * true[part] + room[part])
            <= told[part] - true[part]
            <= 0.1 * true[part] + room[part] + held.get(part, 0.0)
            for part in parts
        ):
            return
        wrong.append((told, true, held))
    raise AssertionError(wrong)


@pytest.mark.parametrize("workers", [0, 2])
def test_no_stage_is_taken_for_another(workers: int) -> None:
    """Samples compute for 20 ms of processor time a batch, collate for 16; nothing is read.

    Other work on the machine adds to oversubscription, and to either stage while it only waits; so
    what the stages computed bounds them from below, and nothing else has any of it.
    """
    found, true, held = measured(workers, burn=0.005, collate=0.016)
    told = {part: found.by_part[part] or 0 for part in ("decode", "collate", "storage", "pin")}
    assert told["storage"] + told["pin"] <= 0.1 * found.exposed_ns
    for part in ("decode", "collate"):
        assert told[part] >= 0.5 * true[part]
        others = true["decode"] + true["collate"] - true[part]
        assert told[part] - held.get(part, 0.0) <= found.exposed_ns - 0.5 * others


@pytest.mark.soak
@pytest.mark.parametrize("chosen", SUBSETS, ids="-".join)
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_sleep_and_computing_in_samples_and_in_collate(
    workers: int, chosen: tuple[str, ...]
) -> None:
    stages = {name: STAGES[name] for name in chosen}
    agrees(workers, "decode", "collate", "other", "oversubscription", "storage", **stages)


@pytest.mark.soak
@pytest.mark.parametrize("workers", [1, 2])
def test_waiting_for_the_lock_that_decoding_holds_is_decoding(workers: int) -> None:
    """Python all the time, in the next batch: the hand-over itself pickles one small tensor.

    By hand: ``test_a_batch_that_waits_for_the_lock_of_the_next_ones_decoding_waits_for_decoding``
    and ``test_a_batch_behind_anothers_unpickling_waits_for_what_that_waits_for``.

    So nearly all of the wait is decoding, or being without a processor on a busy machine.
    """
    shares = []
    for _ in range(3):
        found, _, _ = measured(workers, burn=0.005)
        parts = found.by_part
        shares.append((parts["transfer"] or 0) / found.exposed_ns)
        computing = sum(parts[part] or 0 for part in ("decode", "oversubscription", "startup"))
        if shares[-1] < 0.12 and computing > 0.8 * found.exposed_ns:
            return
    raise AssertionError(shares)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight megabytes on disk."""
    path: Path = tmp_path_factory.mktemp("data") / "data.bin"
    path.write_bytes(np.random.default_rng(0).bytes(8_000_000))
    with path.open("rb+") as written:
        os.fsync(written.fileno())
    return path


BESIDE = [pytest.param(chosen, id="-".join(("read", *chosen))) for chosen in [(), *SUBSETS]]


@pytest.mark.soak
@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("chosen", BESIDE)
def test_a_read_from_storage_is_told_apart_from_every_other_stage(
    file: Path, workers: int, chosen: tuple[str, ...]
) -> None:
    """The file leaves the page cache before every read, where its file system heeds the advice.

    Where it does not, the reads take next to nothing by the data's own clocks too; the same case
    by hand is ``test_the_same_wait_is_storage_or_decode_by_what_the_thread_did``.
    """
    stages = {name: STAGES[name] for name in chosen}
    agrees(workers, "storage", "decode", "collate", file=file, **stages)


@pytest.mark.soak
@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("sample", ["sleep", "burn", "read"])
@pytest.mark.parametrize("collated", ["sleep", "read"])
def test_whatever_collate_does_is_collate(
    file: Path, workers: int, sample: str, collated: str
) -> None:
    """It sleeps or reads, while samples sleep, compute or read: of it nothing is storage."""
    collate = Collate(sleep=0.016) if collated == "sleep" else Collate(file=file)
    stages = {"file": file} if sample == "read" else {sample: STAGES[sample]}
    agrees(workers, "storage", "decode", "collate", "other", collate=collate, **stages)
