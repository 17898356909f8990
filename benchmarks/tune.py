"""Does wb.tune end as well as trying every combination, in a fifth of the time?

Run it as ``python benchmarks/tune.py [--small]``. The image-folder workload of ``workbench demo``
is measured under a whole grid of precision, channels-last, compile, workers, prefetch and batch
sizes; then ``wb.tune`` gets a fifth of the time that the grid took. In the end the best of both are
compared in fair blocks, by sample. It fails when the one of ``wb.tune`` is slower beyond what the
loop differs from itself. ``--small`` leaves most of the grid out, for a few minutes.
"""

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import workbench as wb
from workbench.cli.demo_workload import demo_workload
from workbench.settings import Settings
from workbench.tuning.fair import fair_blocks
from workbench.units import share_text, time_text

SHARE = 0.2
STEPS, BLOCKS = 5, 2
LAST_STEPS, LAST_BLOCKS = 8, 6


def grid(*, small: bool) -> Iterator[Settings]:
    """All combinations; a queue is varied only where there are workers to fill it."""
    loaders = [(0, None), *itertools.product((2,) if small else (1, 2), (2,) if small else (2, 4))]
    sizes = (32, 64) if small else (16, 32, 64)
    precisions, switches = ("fp32", "bf16"), (False, True)
    for size, precision, last, compiled in itertools.product(sizes, precisions, switches, switches):
        if small and (compiled and last):
            continue
        for workers, prefetch in loaders:
            yield Settings(
                batch_size=size,
                precision=None if precision == "fp32" else precision,
                channels_last=True if last else None,
                compile=True if compiled else None,
                workers=workers,
                prefetch_factor=prefetch,
            )


def exhaustive(work: wb.Workload, *, small: bool) -> tuple[Settings, float]:
    """The fastest combination, by sample, and the seconds that it took to find it."""
    began, found = time.monotonic(), list[tuple[float, Settings]]()
    for settings in grid(small=small):
        runs = fair_blocks(work, [settings], steps=STEPS, blocks=BLOCKS, time_limit_s=120)
        took = runs.trials[0].sample_ns
        print(f"  {settings}: {time_text(took)} a sample", flush=True)
        if took is not None:
            found.append((took, settings))
    best = min(found, key=lambda each: each[0])[1]
    return best, time.monotonic() - began


def main() -> int:
    """Print what was found, as a table for docs/tuning.md; 1 when tune ended worse."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="a small part of the grid")
    small = parser.parse_args().small
    work = demo_workload()
    best, grid_s = exhaustive(work, small=small)
    count = sum(1 for _ in grid(small=small))
    with tempfile.TemporaryDirectory() as folder:
        found = wb.tune(work, budget=SHARE * grid_s, folder=Path(folder) / "t", progress=False)
    print(found.history)
    runs = fair_blocks(
        work,
        [best, found.best, best, Settings()],
        steps=LAST_STEPS,
        blocks=LAST_BLOCKS,
        time_limit_s=600,
    )
    change, start = runs.change(0, 1, again=2), runs.change(3, 1)
    times = [time_text(trial.sample_ns) for trial in runs.trials]
    print("\n| | settings | time of a sample | search |\n|---|---|---|---|")
    print(f"| as it is | | {times[3]} | |")
    print(f"| best of {count} | {best} | {times[0]} | {grid_s:.0f} s |")
    print(f"| `wb.tune` | {found.best} | {times[1]} | {found.elapsed_s:.0f} s |")
    if start.ratio is not None:
        print(f"\nwb.tune gained {share_text(1 - start.ratio)} of the time as it is.")
    print(
        f"Against the best of the grid: {change.verdict}, time × {change.ratio:.3f} "
        f"({change.low} to {change.high}); the loop differs from itself by "
        f"{share_text(change.noise_floor)}."
    )
    return int(change.verdict == "slower")


if __name__ == "__main__":
    sys.exit(main())
