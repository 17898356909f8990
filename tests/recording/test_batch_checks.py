"""What the first batches tell before the rest of a run can crash or mislead."""

import pytest
import torch

from workbench.machine.dev_shm import SharedMemory
from workbench.recording.batch_checks import BatchChecks

MB = 1_000_000


def room(free_mb: int) -> SharedMemory:
    return SharedMemory(size=free_mb * MB, free=free_mb * MB)


def test_a_small_shared_memory_is_said_at_the_first_batch() -> None:
    """D08: 4 workers × 2 ready or in the making + 1 in the step = 9 of 10 MB; 64 MB free."""
    checks = BatchChecks({"workers": 4, "prefetch_factor": 2}, lambda: room(64))
    with pytest.warns(UserWarning, match=r"90.0 MB of shared memory.*64.0 MB.*--shm-size"):
        more = checks.look(torch.zeros(10 * MB, dtype=torch.uint8), 0)
    assert more is False
    assert checks.to_json()["shared_memory"] == {
        "batch_bytes": 10 * MB,
        "need_bytes": 90 * MB,
        "free_bytes": 64 * MB,
        "size_bytes": 64 * MB,
    }


@pytest.mark.parametrize(
    ("workers", "free_mb"), [(4, 2000), (0, 1)], ids=["enough room", "no workers"]
)
def test_room_that_suffices_or_is_not_used_is_not_spoken_of(workers: int, free_mb: int) -> None:
    """Warnings are errors here."""
    checks = BatchChecks({"workers": workers, "prefetch_factor": 2}, lambda: room(free_mb))
    checks.look(torch.zeros(10 * MB, dtype=torch.uint8), 0)


def test_a_users_filter_makes_no_error_of_it() -> None:
    """Warnings are errors here as well, and nothing is refused."""
    checks = BatchChecks({"workers": 4, "prefetch_factor": 2}, lambda: room(64))
    assert checks.look(torch.zeros(10 * MB, dtype=torch.uint8), 0) is False


def items(*numbers: int) -> torch.Tensor:
    return torch.tensor(numbers)


def test_samples_that_every_worker_gives_again_are_counted() -> None:
    """D10: two workers that each read all of 0 … 3, in an order of their own: half are repeated."""
    checks = BatchChecks({"workers": 2, "iterable": True}, lambda: None)
    for batch in (items(0, 1), items(2, 0), items(2, 3), items(1, 3)):
        assert checks.look(batch, 0)
    assert checks.to_json()["repetition"] == {"samples": 8, "repeated": 4}


def test_the_next_epoch_repeats_rightly() -> None:
    checks = BatchChecks({"workers": 2, "iterable": True}, lambda: None)
    assert checks.look(items(0, 1), 0)
    assert not checks.look(items(0, 1), 1)
    assert checks.to_json()["repetition"] == {"samples": 2, "repeated": 0}


def test_samples_that_are_all_alike_tell_nothing() -> None:
    checks = BatchChecks({"workers": 2, "iterable": True}, lambda: None)
    for _ in range(3):
        checks.look(torch.ones(4, 2), 0)
    assert checks.to_json()["repetition"] is None


def test_a_map_style_data_set_is_not_looked_at() -> None:
    checks = BatchChecks({"workers": 2, "iterable": False}, lambda: None)
    assert checks.look(items(0, 1), 0) is False
    assert checks.to_json(batches_in_epoch=8) == {
        "shared_memory": None,
        "repetition": None,
        "batches_in_epoch": 8,
    }


def test_it_stops_looking_after_a_few_batches_a_worker() -> None:
    checks = BatchChecks({"workers": 2, "iterable": True}, lambda: None)
    looked = [checks.look(items(number), 0) for number in range(16)]
    assert looked == [True] * 15 + [False]
