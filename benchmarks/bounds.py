"""Is what a finding promises at most never below what its setting gains?

Run it as ``python benchmarks/bounds.py [--small] [--only NAME ...] [--setting TEXT] [--blocks N]``;
with ``--setting optimizer=fused`` it measures the rows whose setting is written so. For each of six
workloads (convolutions, a transformer, rows of a table, a recurrent net, many tiny operators,
pictures in files) the loop is profiled; the setting of every finding, then what ``wb.tune`` would
offer beside them, is measured in fair blocks against the loop as it is. The table holds the
predicted bound against the gain with its 95 % interval. A bound holds (``yes``) where all of the
interval is within it, is broken (``NO``) where all of it is above, and is ``open`` where it lies
inside: then nobody can tell, without more blocks or a quieter machine. ``--small`` measures one
offer of each field and fewer blocks, for a few minutes.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import workbench as wb
from tests.workload.six import SIX
from workbench.run.run import Run
from workbench.settings import Settings
from workbench.statistics.change import Change
from workbench.tuning.advice import Bound, bound_of
from workbench.tuning.candidates import Shares, from_offers
from workbench.tuning.fair import fair_blocks
from workbench.units import share_text
from workbench.workload import Workload

SCALE = 6
"""Wider models and longer data than in the tests, so that a step takes milliseconds."""
PROFILED = 40


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One setting, who advised it, and what a step gains by it at most."""

    settings: Settings
    origin: str
    saving_ns: float | None = None
    speedup: float | None = None


def asked(run: Run, work: Workload, *, small: bool) -> Iterator[Asked]:
    """Findings first; what they name is not offered again."""
    record, seen = run.record, set[Settings]()
    assert record is not None
    timings = record.timings
    assert timings is not None
    steady = timings.step_ns[timings.warmup :]
    waits = sum(timings.input_ns[timings.warmup :])
    for finding in run.findings:
        settings = Settings.from_json(dict(finding.setting or {}))
        if settings.changes() and settings not in seen:
            seen.add(settings)
            yield Asked(
                settings=settings,
                origin=finding.code,
                saving_ns=finding.saving_ns_per_step_at_most,
                speedup=finding.speedup_at_most,
            )
    shares, fields = Shares(input=waits / sum(steady)), set[tuple[str, ...]]()
    for offer in from_offers(work, record.effective, shares, None):
        names = tuple(offer.change.changes())
        if offer.refused or offer.change in seen or (small and names in fields):
            continue
        fields.add(names)
        yield Asked(
            settings=offer.change,
            origin="offer",
            speedup=None if offer.bound is None else 1 / max(1 - offer.bound, 1e-9),
        )


def within(bound: Bound | None, change: Change) -> str:
    """Whether the gain keeps to the bound, in a word."""
    if bound is None or change.low is None:
        return "—"
    if bound.held is False:
        return "NO"
    return "yes" if change.low >= bound.ratio else "open"


def measured(
    work: Workload, one: Asked, *, small: bool, blocks: int | None = None
) -> tuple[str, bool]:
    """A row of the table, and whether its bound is not broken."""
    order = [None, one.settings, None]
    steps, usual = (12, 4) if small else (20, 6)
    blocks = blocks or usual
    runs = fair_blocks(work, order, steps=steps, blocks=blocks, time_limit_s=15 * blocks)
    trial, change = runs.trials[1], runs.change(0, 1, again=2)
    bound = bound_of(runs.trials[0].step_ns, one.saving_ns, one.speedup, change)
    most = "—" if bound is None else share_text(bound.saving)
    start = f"| {work.title} | {one.settings} | {one.origin} | {most} |"
    if not trial.ok:
        return f"{start} {trial.outcome} | — |", True
    if change.ratio is None or change.low is None or change.high is None:
        return f"{start} cannot tell | — |", True
    gain, low, high = (f"{100 * (1 - r):+.0f}" for r in (change.ratio, change.high, change.low))
    said = within(bound, change)
    return f"{start} {gain} % ({low} to {high}) | {said} |", said != "NO"


def main() -> int:
    """Print the table for docs/tuning.md; 1 where a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="few blocks, one value of each field")
    parser.add_argument("--only", nargs="*", choices=list(SIX), default=list(SIX))
    parser.add_argument("--setting", default="", help="only settings written so")
    parser.add_argument("--blocks", type=int, help="blocks of each side")
    chosen = parser.parse_args()
    held = True
    print("| workload | setting | from | bound | gain | within |\n|---|---|---|---|---|---|")
    for name in chosen.only:
        with tempfile.TemporaryDirectory() as folder:
            files = Path(folder) / "files"
            files.mkdir()
            work = SIX[name](files, SCALE)
            run = wb.profile(work, steps=PROFILED, folder=Path(folder) / "runs", progress=False)
            for one in asked(run, work, small=chosen.small):
                if chosen.setting and str(one.settings) != chosen.setting:
                    continue
                row, holds = measured(work, one, small=chosen.small, blocks=chosen.blocks)
                print(row, flush=True)
                held &= holds
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
