"""All ranks together see the batches of one process, each sample once."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import (
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    TensorDataset,
    WeightedRandomSampler,
)

from workbench.errors import SettingError
from workbench.parallel.share import Part, cut_batch, share_source
from workbench.settings import Settings
from workbench.workload import Workload
from workbench.workload.source import open_source

pytestmark = pytest.mark.slow

NUMBERS = TensorDataset(torch.arange(20))


def epoch(data: Any, part: Part | None, seed: int = 5) -> list[list[int]]:
    """The numbers in the batches of an epoch, as one rank sees it; ``None``: as one process."""
    torch.manual_seed(seed)
    np.random.seed(seed)
    work = Workload(nn.Identity(), data)
    with ExitStack() as undo:
        source = open_source(work, Settings(), [], undo)
        if part is not None:
            source = share_source(source, part, [])
            torch.manual_seed(100 + part.number)  # what the model draws differs between ranks
        found = []
        for batch in source.epoch():
            tensor = batch[0] if isinstance(batch, list | tuple) else batch
            found.append(tensor.flatten().tolist())
        return found


def flat(lists: Any) -> list[int]:
    return [each for part in lists for each in part]


def joined(data: Any, size: int = 2) -> list[list[int]]:
    """The batches that all ranks make together."""
    shares = [epoch(data, Part(number=n, of=size)) for n in range(size)]
    assert len({len(share) for share in shares}) == 1, "every rank takes as many steps"
    return [sorted(flat(parts)) for parts in zip(*shares, strict=True)]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_shuffled_loader_keeps_its_batches(workers: int) -> None:
    loader = DataLoader(NUMBERS, 4, shuffle=True, num_workers=workers)
    alone = [sorted(batch) for batch in epoch(loader, None)]
    assert alone != [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15], [16, 17, 18, 19]]
    assert joined(loader) == alone


def test_a_sampler_with_weights_keeps_its_draws() -> None:
    sampler = WeightedRandomSampler([float(n % 3) for n in range(20)], 20)
    loader = DataLoader(NUMBERS, 4, sampler=sampler)
    assert joined(loader) == [sorted(batch) for batch in epoch(loader, None)]


def test_the_rest_of_a_last_batch_that_does_not_divide_is_left_out_everywhere() -> None:
    """20 samples in batches of 6: 6, 6, 6 and 2; 19 of them: 6, 6, 6 and 1."""
    assert [len(b) for b in joined(DataLoader(NUMBERS, 6))] == [6, 6, 6, 2]
    loader = DataLoader(TensorDataset(torch.arange(19)), 6)
    assert [len(b) for b in joined(loader)] == [6, 6, 6]  # one sample is less than one for each


def test_a_batch_that_cannot_be_divided_is_refused() -> None:
    with pytest.raises(SettingError, match="a batch of 5 samples does not divide by 2 ranks"):
        epoch(DataLoader(NUMBERS, 5), Part(number=0, of=2))


def test_a_sampler_of_another_job_is_refused() -> None:
    sampler: Any = DistributedSampler(NUMBERS, num_replicas=2, rank=1)
    with pytest.raises(SettingError, match="DistributedSampler gives the samples of rank 1 of 2"):
        epoch(DataLoader(NUMBERS, 4, sampler=sampler), Part(number=0, of=2))


class Stream(IterableDataset[Any]):
    """Shuffles by the global random state, as many do."""

    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter(torch.arange(21)[torch.randperm(21)])


class OwnStream(Stream):
    """Asks for its rank, and so divides itself."""

    def __iter__(self) -> Iterator[torch.Tensor]:
        rank = 1 if torch.distributed.is_initialized() and torch.distributed.get_rank() else 0
        return iter(torch.arange(rank, 20, 2))


def test_a_stream_is_read_by_all_and_each_sample_kept_once() -> None:
    """21 samples for two ranks: ten each, in batches of two, and one left out."""
    batches = joined(DataLoader(Stream(), 4))
    assert [len(batch) for batch in batches] == [4, 4, 4, 4, 4]
    assert len(set(flat(batches))) == 20


def test_a_stream_that_divides_itself_is_left_to() -> None:
    assert epoch(DataLoader(OwnStream(), 4), Part(number=0, of=2))[0] == [0, 2]


def test_ready_batches_are_cut() -> None:
    data = [(torch.arange(4), torch.arange(4)), (torch.arange(4, 7), torch.arange(4, 7))]
    assert joined(data) == [[0, 1, 2, 3], [4, 5]]
    assert joined(lambda: (torch.arange(4) for _ in range(2))) == [[0, 1, 2, 3]] * 2


def test_a_batch_without_a_common_dimension_cannot_be_cut() -> None:
    with pytest.raises(SettingError, match="no common first dimension"):
        cut_batch((torch.ones(4), torch.ones(3)), Part(number=0, of=2))


def test_stages_of_one_size_get_batches_of_one_size() -> None:
    part = Part(number=0, of=1, same_size=True)
    assert [len(b) for b in epoch(DataLoader(NUMBERS, 8), part)] == [8, 8]
    assert [len(b) for b in epoch([torch.ones(4), torch.ones(3)], part)] == [4]


class Drawing(Dataset[Any]):
    """What each sample draws in a worker: augmentation."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.randint(2**30, ())


def test_workers_of_different_ranks_draw_different_numbers() -> None:
    loader = DataLoader(Drawing(), 4, num_workers=1)
    first, second = (flat(epoch(loader, Part(number=n, of=2))) for n in (0, 1))
    assert set(first).isdisjoint(second)
