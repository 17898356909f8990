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
        more = checks.look(torch.zeros(10 * MB, dtype=torch.uint8))
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
    checks.look(torch.zeros(10 * MB, dtype=torch.uint8))


def test_a_users_filter_makes_no_error_of_it() -> None:
    """Warnings are errors here as well, and nothing is refused."""
    checks = BatchChecks({"workers": 4, "prefetch_factor": 2}, lambda: room(64))
    assert checks.look(torch.zeros(10 * MB, dtype=torch.uint8)) is False


def test_batches_that_every_worker_gives_again_are_counted() -> None:
    """D10: two workers that each read all of 0 … 3, in batches of two: half of them repeat."""
    checks = BatchChecks({"workers": 2, "iterable": True}, lambda: None)
    for first in (0, 0, 2, 2):
        assert checks.look(torch.arange(first, first + 2))
    assert checks.to_json()["repetition"] == {"batches": 4, "repeated": 2}


def test_a_map_style_data_set_is_not_looked_at() -> None:
    checks = BatchChecks({"workers": 2, "iterable": False}, lambda: None)
    assert checks.look(torch.arange(4)) is False
    assert checks.to_json() == {"shared_memory": None, "repetition": None}


def test_it_stops_looking_after_a_few_batches_a_worker() -> None:
    checks = BatchChecks({"workers": 2, "iterable": True}, lambda: None)
    looked = [checks.look(torch.full((1,), number)) for number in range(16)]
    assert looked == [True] * 15 + [False]
