"""Batches of whatever type go through a profile and a capture as they are."""

from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

import workbench as wb
from tests.profiling.failing import Failing
from tests.profiling.loops import workload

pytestmark = pytest.mark.slow


class Refusing(torch.Tensor):
    """Wants no function of torch."""

    @classmethod
    def __torch_function__(cls, function: Any, *rest: Any, **more: Any) -> Any:
        raise TypeError(f"{function} is not for me")


class BrokenMapping(dict[str, Any]):
    """Does not tell its values."""

    def values(self) -> Any:
        raise RuntimeError("not now")


class Graph:
    """A batch as graph libraries make it: no container, and it moves itself."""

    def __init__(self, samples: list[Any]) -> None:
        self.samples = samples

    def to(self, device: Any, **options: Any) -> "Graph":
        return Graph([sample.to(device, **options) for sample in self.samples])

    def __getattr__(self, name: str) -> Any:
        # It knows its own attributes and no others; what Python asks for must fail as it expects.
        raise AttributeError(name) if name.startswith("__") else KeyError(name)


def containing_itself() -> list[Any]:
    batch: list[Any] = [torch.ones(2)]
    batch.append(batch)
    return batch


BATCHES = {
    "list": [torch.ones(4, 4), torch.zeros(4, dtype=torch.long)],
    "mapping": {"x": torch.ones(4, 4), "names": ["a", "b", "c", "d"], "none": None},
    "empty list": [],
    "empty mapping": {},
    "text": "a text",
    "bytes": b"bytes",
    "number": 7,
    "object": object(),
    "sparse": torch.ones(3).to_sparse(),
    "refusing": torch.ones(3).as_subclass(Refusing),
    "meta": torch.ones(3, device="meta"),
    "ragged": torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged),
    "packed": torch.nn.utils.rnn.pack_sequence([torch.ones(3), torch.ones(2)]),
    "graph": Graph([torch.ones(4, 4)]),
    "itself": containing_itself(),
    "broken mapping": BrokenMapping(x=torch.ones(3)),
    "scalar": torch.ones((), dtype=torch.bfloat16),
}


@pytest.mark.parametrize("kind", BATCHES)
def test_batches_of_any_type_pass_through(kind: str) -> None:
    """A step of the user's own takes what it likes, and the same objects come out of a watch."""
    batch = BATCHES[kind]

    def step(model: Any, given: Any) -> None:
        assert given is batch

    run = wb.profile(workload([batch] * 3, step=step), steps=2, progress=False)
    assert run.record.timings is not None
    with wb.capture(warmup=1, steps=2) as cap:
        for given in cap.watch([batch] * 6):
            assert given is batch
            cap.step()
    assert cap.run.steps is not None


def as_sparse(samples: list[Any]) -> Any:
    return torch.stack([row for row, _ in samples]).to_sparse(), [[samples], {"more": [samples]}]


@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled")
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("collate", [as_sparse, Graph])
def test_batches_of_any_type_come_from_a_loader(collate: Any, workers: int) -> None:
    mine = DataLoader(Failing(bool), batch_size=4, num_workers=workers, collate_fn=collate)
    kind = type(collate([(torch.ones(1), torch.ones(1))]))

    def step(model: Any, given: Any) -> None:
        assert type(given) is kind

    run = wb.profile(workload(mine, step=step), steps=3, progress=False)
    with wb.capture(warmup=1, steps=2) as cap:
        for number, given in enumerate(cap.watch(mine)):
            assert type(given) is kind
            cap.step()
            if number == 5:
                break
    for loader_of in (run.loader, cap.run.loader):
        assert loader_of is not None
