"""A real image folder, decoded by the training process, then by two workers: from wait to cure.

Held to what other programs cannot change: CPU time of decoding by the data's own clock, who decoded
how many images, and whether what is said of measured times follows from them. That the gain is told
on a machine with nothing else to do is a test of ``make soak``.
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
from workbench.run.compare import Comparison
from workbench.run.run import Run
from workbench.units import time_text

BATCH = 16
TOOK_NS: list[int] = []
"""Beside the data, whose own state a profile puts back."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("one_thread"),
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


@pytest.fixture
def data() -> Timed:
    """Images in the page cache: a cold one is another finding."""
    folder = images(600, 256, progress=False) / "train"
    for file in filter(Path.is_file, folder.rglob("*")):
        file.read_bytes()
    TOOK_NS.clear()
    return Timed(folder, size=64)


def tried(data: Timed, folder: Path, *, steps: int) -> tuple[Run, Run, int]:
    """Loaded by the loop, then with the setting that is advised; how often the second decoded."""
    work, options = training(data), {"steps": steps, "folder": folder, "progress": False}
    before = wb.profile(work, wb.Settings(workers=0), name="before", **options)
    decoded = len(TOOK_NS)
    setting = found(before, "WB101").setting
    assert setting is not None
    assert setting.keys() == {"workers"}
    after = wb.profile(work, wb.Settings(workers=setting["workers"]), name="after", **options)
    return before, after, len(TOOK_NS) - decoded


def found(run: Run, code: str) -> Any:
    finding = next((each for each in run.findings if each.code == code), None)
    assert finding is not None, [each.code for each in run.findings]
    return finding


def whole_ns(run: Run) -> float:
    """The mean step of record."""
    assert run.record is not None
    assert run.record.timings is not None
    steps = run.record.timings.step_ns[run.record.timings.warmup :]
    return sum(steps) / len(steps)


def held(compared: Comparison, bound: float, whole: float) -> str | None:
    """What must be said of the bound: the gain of the mean step, by the interval of the verdict."""
    change = compared.change
    if change.ratio is None or change.low is None or change.high is None:
        return None
    gain, least, most = (whole * (1 - ratio) for ratio in (change.ratio, change.high, change.low))
    if most <= 0:
        return "so it saves nothing here."
    if least < 0:
        both = f"between {time_text(most)} less and {time_text(-least)} more a step"
        return f"{both}, so a gain cannot be told from chance."
    told = f"{time_text(gain)} ({time_text(least)} to {time_text(most)}) less a step"
    if gain <= bound:
        return f"{told}, within the bound."
    if least <= bound:
        return f"{told}, above the bound by no more than chance."
    return f"{told}, above the bound, which was too low: something else changed as well."


def test_decoding_in_the_loop_is_found_bounded_and_cured_and_the_gain_is_laid_beside_its_bound(
    data: Timed, tmp_path: Path
) -> None:
    before, after, decoded = tried(data, tmp_path, steps=20)
    decoding = BATCH * sorted(TOOK_NS)[len(TOOK_NS) // 10]  # of a batch, without a slow moment

    # Input-bound, by decoding unless other programs kept the processors longer than it computed.
    top, parts = found(before, "WB101"), before.stalls
    assert parts is not None
    sums = {name: int(parts[name].sum()) for name in ("decode", "oversubscription")}
    exposed, steps = int(parts["exposed_ns"].sum()), int(parts["step"].notna().sum())
    assert sums["decode"] >= 0.8 * decoding * steps
    assert sums["decode"] + sums["oversubscription"] >= 0.5 * exposed
    if sums["decode"] >= 0.5 * exposed:
        assert top.evidence["mostly"] == "decode"
        assert "mostly for decoding" in top.title
        assert 0.8 * decoding <= found(before, "WB102").saving_ns_per_step_at_most
    assert not {each.code for each in before.findings} & {"WB103", "WB105", "WB107"}

    # The right bound: all of decoding can go, and no more than all but the step on its own.
    bound = top.saving_ns_per_step_at_most
    assert before.record is not None
    assert before.record.timings is not None
    assert before.record.timings.replay_ns is not None
    assert 0.8 * decoding <= bound <= whole_ns(before) - min(before.record.timings.replay_ns)

    # With the setting the loop decodes nothing itself, and what that gains is held to the bound.
    assert decoded == 0
    assert after.record is not None
    assert after.record.effective["workers"] == top.setting["workers"]
    compared = wb.compare(before, after)
    told = [note for note in compared.notes if "said that workers=" in note and "WB101" in note]
    said = held(compared, bound, whole_ns(before))
    assert len(told) == (said is not None)
    if said is not None:
        assert told[0].endswith(said)
        assert f"saves at most {time_text(bound)} a step" in told[0]
        assert told[0].split(";")[0] in " ".join(repr(compared).split())


@pytest.mark.soak
def test_on_a_quiet_machine_the_gain_is_told_and_lies_within_the_bound(
    data: Timed, tmp_path: Path
) -> None:
    before, after, _ = tried(data, tmp_path, steps=60)
    compared = wb.compare(before, after)
    top = before.findings[0]
    assert (top.code, top.evidence["mostly"]) == ("WB101", "decode")
    assert compared.verdict == "faster"
    (told,) = (note for note in compared.notes if "WB101" in note and "said that" in note)
    assert "within the bound" in told or "by no more than chance" in told, told
