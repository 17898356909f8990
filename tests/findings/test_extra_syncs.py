"""WB404: gradients are averaged once for each optimizer step, after its last micro-batch."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.findings.loops import Loop, fired, looped, of


def accumulating(reduces: Sequence[int]) -> Loop:
    """Steps of 1000 µs with a micro-batch of 200 for each number of all-reduces behind it."""

    def body(loop: Loop, at: float) -> None:
        for batch, count in enumerate(reduces):
            start = at + 200 * batch
            loop.trace.range("DistributedDataParallel.forward", start, 50)
            loop.trace.op("aten::mm", start + 5, 40)
            for each in range(count):
                loop.trace.op("gloo:all_reduce", start + 60 + 20 * each, 15)
        loop.trace.range("Optimizer.step#SGD.step", at + 900, 50)

    return looped(body, 1000, steps=4, gpu=False)


def test_a_set_after_every_micro_batch_is_three_too_many(tmp_path: Path) -> None:
    """L07: four micro-batches, four sets."""
    finding = fired(accumulating([2, 2, 2, 2]).run(tmp_path), "WB404")
    assert "4 times for each optimizer step, 3 of them needlessly" in finding.title
    assert "no_sync()" in finding.advice


@pytest.mark.parametrize(
    "reduces",
    [[0, 0, 0, 2], [2], [1, 1, 1, 3], [0, 0]],
    ids=["no_sync", "no accumulation", "statistics of other layers", "no gradients averaged"],
)
def test_one_set_before_the_step_is_right(tmp_path: Path, reduces: list[int]) -> None:
    assert of(accumulating(reduces).run(tmp_path), "WB404") is None


def test_a_set_after_the_first_micro_batch_only_is_a_matter_of_correctness(tmp_path: Path) -> None:
    finding = fired(accumulating([2, 0, 0, 0]).run(tmp_path), "WB404")
    assert "different gradients" in finding.title
    assert finding.saving_ns_per_step_at_most is None
    assert finding.severity == "warning"
