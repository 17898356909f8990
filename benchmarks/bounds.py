"""Is what a finding promises at most never below what its setting gains?

Run it as ``python benchmarks/bounds.py [--small] [--only NAME ...]``. For each of six workloads
(convolutions, a transformer, rows of a table, a recurrent net, many tiny operators, pictures in
files) the loop is profiled; the setting of every finding, then what ``wb.tune`` would offer beside
them, is measured in fair blocks against the loop as it is. The table holds the predicted bound
against the gain with its 95 % interval. A bound is broken where even the low end of the interval
is above it. ``--small`` measures one offer of each field and fewer blocks, for a few minutes.
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
from workbench.tuning.advice import bound_of
from workbench.tuning.candidates import Shares, from_offers
from workbench.tuning.fair import fair_blocks
from workbench.units import share_text
from workbench.workload import Workload

SCALE = 6
"""Wider models and longer data than in the tests, so that a step takes milliseconds."""
PROFILED = 40
TOO_WIDE = 1.0
"""Own choice: an interval of more than a whole step lets nobody say that a bound holds."""


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


def measured(work: Workload, one: Asked, *, small: bool) -> tuple[str, bool]:
    """A row of the table, and whether the bound holds."""
    order = [None, one.settings, None]
    steps, blocks = (12, 4) if small else (20, 6)
    runs = fair_blocks(work, order, steps=steps, blocks=blocks, time_limit_s=90)
    trial, change = runs.trials[1], runs.change(0, 1, again=2)
    bound = bound_of(runs.trials[0].step_ns, one.saving_ns, one.speedup, change)
    most = "—" if bound is None else share_text(bound.saving)
    start = f"| {work.title} | {one.settings} | {one.origin} | {most} |"
    if not trial.ok:
        return f"{start} {trial.outcome} | — |", True
    if change.ratio is None or change.low is None or change.high is None:
        return f"{start} cannot tell | — |", True
    gain, low, high = (f"{100 * (1 - r):+.0f}" for r in (change.ratio, change.high, change.low))
    holds = bound is None or bound.held is not False
    said = "—" if bound is None else "yes" if holds else "NO"
    if holds and bound is not None and change.high - change.low > TOO_WIDE:
        said = "too noisy"
    return f"{start} {gain} % ({low} to {high}) | {said} |", holds


def main() -> int:
    """Print the table for docs/tuning.md; 1 where a bound is broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true", help="few blocks, one value of each field")
    parser.add_argument("--only", nargs="*", choices=list(SIX), default=list(SIX))
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
                row, holds = measured(work, one, small=chosen.small)
                print(row, flush=True)
                held &= holds
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
