"""An out-of-memory error says what holds the memory and what to change, for how many bytes."""

import pytest
import torch
from torch import nn

import workbench as wb
from workbench.profiling.memory import explain_out_of_memory
from workbench.settings import Settings

GPU = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.00 GiB of "
    "which 1.00 GiB is free. Of the allocated memory 10.00 GiB is allocated by PyTorch, and "
    "{} is reserved by PyTorch but unallocated."
)


def noted(text: str) -> str:
    model = nn.Linear(1024, 1024, bias=False)
    data = torch.utils.data.TensorDataset(torch.ones(4, 1024), torch.ones(4, 1024))
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    work = wb.Workload(model, data, loss=nn.MSELoss(), optimizer=sgd, batch_size=64)
    with (
        pytest.raises(torch.OutOfMemoryError) as caught,
        explain_out_of_memory(work, Settings()),
    ):
        raise torch.OutOfMemoryError(text)
    (note,) = caught.value.__notes__
    return note.replace("\u2009", " ")


def test_what_is_held_and_the_settings_that_need_less() -> None:
    """4.19 MB of weights, as much of gradients; of 10 GiB = 10.7 GB the rest is activations.

    Half a batch saves half of these.
    """
    note = noted(GPU.format("200.00 MiB"))
    assert "put everything back" in note
    assert "4.19 MB weights, 4.19 MB gradients, 10.7 GB activations" in note
    assert "asked for 2.15 GB more" in note
    assert "Settings(batch_size=32, accumulation=2)" in note
    assert "Settings(precision='bf16')" in note
    assert "expandable_segments" not in note, "200 MiB in pieces would not have been enough"


def test_fragments_that_would_have_been_enough_are_named() -> None:
    assert "expandable_segments:True" in noted(GPU.format("3.00 GiB"))


def test_the_host_says_what_the_model_holds() -> None:
    note = noted("DefaultCPUAllocator: can't allocate memory: you tried to allocate 4096 bytes")
    assert "Held: 4.19 MB weights" in note
