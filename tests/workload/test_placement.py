"""Batches in any nesting: which tensors they hold, and where those go."""

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_sequence

from workbench.workload.placement import moved, samples_in, tensors_of


class Pair(NamedTuple):
    """A batch with names."""

    left: Any
    right: Any


def doubled(tensor: Tensor) -> Tensor:
    return tensor * 2


def test_every_tensor_is_met_once_in_order_whatever_holds_it() -> None:
    one, two, three = torch.ones(1), torch.ones(2), torch.ones(3)
    batch: list[Any] = [one, {"a": Pair(two, "text"), "b": None}, (three,)]
    batch.append(batch)
    assert [len(tensor) for tensor in tensors_of(batch)] == [1, 2, 3]
    assert samples_in([torch.ones(()), two]) == 2
    assert samples_in("text") is None


def test_a_moved_batch_keeps_its_types() -> None:
    after = moved({"pair": Pair(torch.ones(2), [torch.ones(1), 7])}, doubled)
    assert type(after["pair"]) is Pair
    assert after["pair"].left.tolist() == [2, 2]
    assert after["pair"].right[1] == 7


def test_a_list_inside_itself_has_an_end() -> None:
    batch: list[Any] = [torch.ones(1)]
    batch.append(batch)
    after = moved(batch, doubled)
    assert after[0].item() == 2
    assert after[1] is batch


def test_lengths_of_packed_sequences_stay_on_the_host() -> None:
    """A recurrent network on a device takes them from there, and nowhere else."""
    packed = pack_sequence([torch.ones(1, 4), torch.ones(3, 4)], enforce_sorted=False)
    after = moved(packed, lambda tensor: tensor.to("meta"))
    assert after.data.is_meta
    assert after.sorted_indices.is_meta
    assert after.batch_sizes.tolist() == [2, 1, 1]
    nn.GRU(4, 2, device="meta")(after)
