"""A real image folder, decoded by the training process, then by two workers: from wait to cure.

Held to clocks of the data's own that other programs cannot lengthen: CPU time of decoding.
"""

import time
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from torch import Tensor, nn

import workbench as wb
from workbench.datasets import images
from workbench.datasets.loading import ImageFolder
from workbench.run.run import Run

BATCH = 16
TOOK_NS: list[int] = []
"""Beside the data, whose own state a profile puts back."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:This DataLoader will create"),
]


class Timed(ImageFolder):
    """Notes what its items take of a processor, in the process that loads them."""

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        began = time.thread_time_ns()
        item = super().__getitem__(index)
        TOOK_NS.append(time.thread_time_ns() - began)
        return item


def training(data: ImageFolder) -> wb.Workload:
    """A small convolution: next to decoding it costs little."""
    torch.manual_seed(0)
    layers: list[nn.Module] = [nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(4)]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(128, len(data.classes)))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    return wb.Workload(
        model, data, loss=F.cross_entropy, optimizer=optimizer, batch_size=BATCH, name="images"
    )


def gain(run: Run, code: str) -> float:
    found = next((each for each in run.findings if each.code == code), None)
    assert found is not None, [each.code for each in run.findings]
    assert found.saving_ns_per_step_at_most is not None
    return found.saving_ns_per_step_at_most


def test_decoding_in_the_loop_is_found_bounded_cured_and_the_gain_is_within_the_bound(
    tmp_path: Path,
) -> None:
    folder = images(600, 256, progress=False) / "train"
    for file in filter(Path.is_file, folder.rglob("*")):
        file.read_bytes()  # a cold cache is another finding
    data = Timed(folder, size=64)
    TOOK_NS.clear()
    work = training(data)
    options: dict[str, Any] = {"steps": 20, "folder": tmp_path, "progress": False}
    before = wb.profile(work, wb.Settings(workers=0), name="before", **options)
    decoding = BATCH * sum(TOOK_NS) / len(TOOK_NS)

    # The top finding is input, bound by decoding, and names the switch.
    top = before.findings[0]
    assert top.code == "WB101"
    assert top.evidence["mostly"] == "decode"
    assert "mostly for decoding" in top.title
    codes = {each.code for each in before.findings}
    assert "WB102" in codes
    assert not codes & {"WB103", "WB105", "WB106", "WB107"}
    assert top.setting is not None
    assert top.setting["workers"] >= 1

    # The right bound: all of decoding can go, and no more than all but the step on its own.
    record = before.record
    assert record is not None
    assert record.timings is not None
    assert record.timings.replay_ns is not None
    steps = record.timings.step_ns[record.timings.warmup :]
    whole = sum(steps) / len(steps)
    assert gain(before, "WB101") >= 0.8 * decoding
    assert gain(before, "WB101") <= whole - min(record.timings.replay_ns)
    assert 0.8 * decoding <= gain(before, "WB102") <= gain(before, "WB101")

    # With the setting the gain lies within the bound, and the comparison says so.
    settings = wb.Settings(workers=top.setting["workers"])
    after = wb.profile(work, settings, name="after", **options)
    compared = wb.compare(before, after)
    told = [
        note for note in compared.notes if note.startswith("WB101") and "said that workers=" in note
    ]
    assert len(told) == 1
    assert "within the bound" in told[0] or "by no more than chance" in told[0], told
    assert told[0].split(";")[0] in " ".join(repr(compared).split())
