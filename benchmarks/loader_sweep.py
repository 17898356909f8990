"""The sweep of a loader against an exhaustive search over the same switches.

Run it as ``python benchmarks/loader_sweep.py [--loaders images ...] [--small]``. For each of four
loops every way of loading of a grid (workers × prefetch × persistence, and batched fetch where the
data set has it) is measured by interleaved blocks, as many as ``wb.verify`` takes. Then the loop is
swept, and choice and exhaustive best are measured once more in turns, the best twice: what it
differs from itself is the A/A spread. It fails where the choice is slower beyond that, or where the
sweep took more than a quarter of the time. ``--small`` measures a part of the grid, shortly.

- *images*: JPEG files of 256 pixels, decoded and cut at random, and a small CNN.
- *rows*: a table in memory in batches of 512 rows, and an MLP.
- *text*: windows of 128 bytes, and one layer of a transformer.
- *storage*: a file server that answers after 2 ms, and a step that leaves the processors alone.
"""

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import workbench as wb
from workbench.clinic import case
from workbench.datasets import images, text
from workbench.datasets.loading import ImageFolder, TextWindows
from workbench.errors import SettingError
from workbench.figures.comparison import interval_text
from workbench.machine import usable_cpus
from workbench.tuning.fair import fair_blocks
from workbench.tuning.sweep import sweep_loader
from workbench.tuning.trial import FairRuns
from workbench.workload.capability import offers

STEPS, BLOCKS = 20, 4
"""As in ``wb.verify``."""
SHARE = 0.25


class NextByte(nn.Module):
    """One transformer layer over bytes; gives the scores of each next one."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, 64)
        self.layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
        self.head = nn.Linear(64, 256)

    def forward(self, tokens: Tensor) -> Tensor:
        """Scores of shape (batch, 256, length)."""
        answer: Tensor = self.head(self.layer(self.embedding(tokens))).transpose(1, 2)
        return answer


def workload(model: nn.Module, loader: DataLoader[Any], name: str) -> wb.Workload:
    """Training with plain SGD."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    return wb.Workload(model, loader, loss=functional.cross_entropy, optimizer=optimizer, name=name)


def of_images() -> wb.Workload:
    """Decoding takes about as long as the step."""
    data = ImageFolder(images(progress=False) / "train", size=64, augment=1)
    model = nn.Sequential(
        *(nn.Conv2d(3, 32, 3, 2), nn.ReLU(), nn.Conv2d(32, 64, 3, 2), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(1024, len(data.classes))),
    )
    return workload(model, DataLoader(data, batch_size=16, shuffle=True), "images")


def of_rows() -> wb.Workload:
    """Rows of microseconds each."""
    chance = torch.Generator().manual_seed(0)
    table = TensorDataset(
        torch.randn(100_000, 32, generator=chance),
        torch.randint(10, (100_000,), generator=chance),
    )
    model = nn.Sequential(nn.Linear(32, 256), nn.ReLU(), nn.Linear(256, 10))
    return workload(model, DataLoader(table, batch_size=512, shuffle=True), "rows")


def of_text() -> wb.Workload:
    """Windows that are cut from memory."""
    data = TextWindows(text() / "prose.txt", length=128)
    return workload(NextByte(), DataLoader(data, batch_size=16, shuffle=True), "text")


def of_storage() -> wb.Workload:
    """Requests that wait."""
    return case("slow_storage").workload()


LOADERS: dict[str, Callable[[], wb.Workload]] = {
    "images": of_images,
    "rows": of_rows,
    "text": of_text,
    "storage": of_storage,
}


def grid(work: wb.Workload, *, small: bool) -> list[wb.Settings]:
    """Every way of loading that can act, the loop as it is first."""
    workers = (1, 2) if small else (1, 2, 2 * usable_cpus())
    prefetches, kept = ((2,), (True,)) if small else ((2, 4), (False, True))
    asked: list[dict[str, Any]] = [{}]
    asked += [
        {"workers": w, "prefetch_factor": p, "persistent_workers": k}
        for w, p, k in itertools.product(dict.fromkeys(workers), prefetches, kept)
    ]
    batched = wb.Settings(batched_fetch=True)
    if any(offer.state != "refused" for offer in offers(work, batched)):
        asked += [{**each, "batched_fetch": True} for each in asked]
    return [wb.Settings(**each) for each in asked]


def exhaustive(work: wb.Workload, steps: int, *, small: bool) -> tuple[wb.Settings, int, float]:
    """The best of the grid, how many there are, and the seconds that it took."""
    tried = grid(work, small=small)
    began = time.monotonic()
    runs = fair_blocks(
        work,
        tried,
        steps=6 if small else steps,
        blocks=2 if small else BLOCKS,
        time_limit_s=None,
        warmed=dict.fromkeys(tried[1:], 0.0),
    )
    took = time.monotonic() - began
    return min(runs.trials, key=lambda trial: pace(trial, runs)).settings, len(tried), took


def pace(trial: Any, runs: FairRuns) -> float:
    """Median step, waits for processors that others held left out."""
    clean = runs.undisturbed(*range(len(runs.trials)))
    steps = [statistics.median(block) for block in trial.times(undisturbed=clean)]
    return statistics.fmean(steps) if steps else float("inf")


def row(name: str, steps: int, *, small: bool) -> tuple[str, bool]:
    """A line of the table, and whether it is as it should be."""
    work = LOADERS[name]()
    best, ways, all_s = exhaustive(work, steps, small=small)
    print(f"  {name}: best of {ways} in {all_s:.0f} s: {named(best)}", file=sys.stderr, flush=True)
    began = time.monotonic()
    swept = sweep_loader(work, budget_s=None)
    sweep_s = time.monotonic() - began
    print(f"  {name}: in {sweep_s:.0f} s: {swept.sentence}", file=sys.stderr, flush=True)
    runs = fair_blocks(
        work, [best, swept.settings, best], steps=steps, blocks=BLOCKS, time_limit_s=None
    )
    change = runs.change(0, 1, again=2)
    if change.ratio is None or change.low is None or change.high is None:
        raise SettingError(f"{name} could not be compared: {change.reason}")
    took = interval_text(change.ratio, change.low, change.high)
    fine = change.verdict != "slower" and (small or sweep_s <= SHARE * all_s)
    measured = sum(1 for each in swept.rows if each.blocks)
    cells: Sequence[object] = (
        *(name, named(best), named(swept.settings), took, f"{100 * (change.noise_floor or 0):.1f}"),
        *(f"{ways} in {all_s:.0f} s", f"{measured} in {sweep_s:.0f} s", f"{sweep_s / all_s:.0%}"),
        "yes" if fine else "NO",
    )
    return f"| {' | '.join(map(str, cells))} |", fine


def named(settings: wb.Settings) -> str:
    """The settings, or that there are none."""
    return str(settings) if settings.changes() else "as it is"


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--loaders", nargs="+", choices=LOADERS, default=list(LOADERS))
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of a block")
    given = parser.parse_args()
    print(
        "| loader | exhaustive best | choice | time of a step, choice against best | A/A, % "
        "| exhaustive | sweep | share | holds |\n|---|---|---|---|---|---|---|---|---|"
    )
    wrong = []
    for name in given.loaders:
        line, fine = row(name, given.steps, small=given.small)
        print(line, flush=True)
        wrong += [] if fine else [name]
    if wrong:
        sys.exit(f"worse than the best, or too long: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
