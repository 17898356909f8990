"""How often the findings are right: precision and recall of every rule, and false alarms.

Run it as ``python benchmarks/honesty.py [--without planted|built|real] [--seed N]``. It prints the
table that ``docs/honesty.md`` keeps. Three sources, judged apart by what is known of each:

- *planted*: every fault of ``workbench.clinic`` that a CPU can show, measured here, sick and as its
  healthy twin. The planted finding must fire on the first and stay silent on the second; what else
  fires on a twin is listed, not judged, as nobody knows that it is wrong.
- *built*: the traces of ``workbench.datasets``, whose findings are known whole.
- *real*: traces of others in ``WORKBENCH_TRACES``, whose findings were checked by hand.
"""

import argparse
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch

import workbench as wb
from tests.datasets.test_built import NAMED
from tests.findings.test_real_traces import EXPECTED
from workbench import clinic, datasets
from workbench.run.run import Run

PRECISION, RECALL = 0.95, 0.90


@dataclass
class Counts:
    """Right and wrong answers by code of the finding."""

    right: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    false: Counter[str] = field(default_factory=Counter)
    silent: Counter[str] = field(default_factory=Counter)
    """Healthy twins on which it rightly said nothing."""
    told: list[str] = field(default_factory=list)
    """What was missed or wrong, and where."""
    beside: Counter[str] = field(default_factory=Counter)
    """What else fires on healthy twins."""
    healthy: int = 0
    alarms: int = 0

    def add(self, where: str, found: set[str], wanted: set[str], *, only: set[str] | None) -> None:
        """Judge one case; ``only``: the codes that are known, ``None`` for all."""
        judged = found if only is None else found & only
        self.right.update(judged & wanted)
        self.missed.update(wanted - judged)
        self.false.update(judged - wanted)
        self.told += [f"{code} missed: {where}" for code in sorted(wanted - judged)]
        self.told += [f"{code} wrong: {where}" for code in sorted(judged - wanted)]

    def twin(self, where: str, code: str, found: set[str]) -> None:
        """Judge a healthy twin."""
        self.healthy += 1
        self.alarms += code in found
        self.add(where, found, set(), only={code})
        self.silent[code] += code not in found
        self.beside.update(found - {code})


def codes(run: Run) -> set[str]:
    """What fires."""
    return {finding.code for finding in run.findings if finding.verdict == "yes"}


def planted(counts: Counts, seed: int) -> None:
    """Measure every fault, and its twin; of tiny work a second thread only waits for the first."""
    torch.set_num_threads(1)
    for patient in clinic.CASES:
        if patient.needs_accelerator:
            continue
        for scale in (1.0, 0.0):
            case = clinic.case(patient.name, seed=seed, scale=scale)
            run = wb.profile(case.workload(), case.given(), record=case.record, progress=False)
            if scale:
                counts.add(case.name, codes(run), {case.finding}, only={case.finding})
            else:
                counts.twin(f"healthy {case.name}", case.finding, codes(run))
            print(f"  {case.name} at {scale:g}: {sorted(codes(run))}", file=sys.stderr, flush=True)


def built(counts: Counts) -> None:
    """Read the traces that come with the package."""
    for name, wanted in NAMED.items():
        found = codes(wb.open(datasets.traces(name)))
        counts.add(f"built {name}", found, wanted, only=None)
        if not wanted:
            counts.healthy += 1
            counts.alarms += bool(found)


def real(counts: Counts) -> None:
    """Read the traces of others."""
    root = Path(os.environ["WORKBENCH_TRACES"])
    for name, wanted in EXPECTED.items():
        found = {finding.code for finding in wb.open(root / name).findings}  # ruled out, too
        counts.add(f"real {name.rpartition('/')[2]}", found, wanted, only=None)
        if not wanted:
            counts.healthy += 1
            counts.alarms += bool(found)


def rows(counts: Counts) -> Iterator[str]:
    """The table in Markdown."""
    yield "| rule | right | missed | wrong | rightly silent on a twin | precision | recall |"
    yield "|---|---|---|---|---|---|---|"
    seen = sorted({*counts.right, *counts.missed, *counts.false})
    for code in seen:
        yield _row(code, counts.right[code], counts.missed[code], counts.false[code], counts)
    sums = [sum(each.values()) for each in (counts.right, counts.missed, counts.false)]
    yield _row("all", *sums, counts)


def _row(code: str, right: int, missed: int, false: int, counts: Counts) -> str:
    silent = sum(counts.silent.values()) if code == "all" else counts.silent[code]
    precision = right / (right + false) if right + false else None
    recall = right / (right + missed) if right + missed else None
    marks = [
        "not measured" if value is None else f"{value:.2f}{'' if value >= least else ' ▼'}"
        for value, least in ((precision, PRECISION), (recall, RECALL))
    ]
    return f"| {code} | {right} | {missed} | {false} | {silent} | {' | '.join(marks)} |"


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--without", nargs="*", default=[], choices=["planted", "built", "real"])
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    counts = Counts()
    start = Path.cwd()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
        try:
            if "planted" not in given.without:
                planted(counts, given.seed)
            if "built" not in given.without:
                built(counts)
            if "real" not in given.without and os.environ.get("WORKBENCH_TRACES"):
                real(counts)
            elif "real" not in given.without:
                print("WORKBENCH_TRACES is not set: real traces are left out.\n")
        finally:
            os.chdir(start)
    print("\n".join(rows(counts)))
    print(f"\nFalse alarms on healthy controls: {counts.alarms} of {counts.healthy}.")
    if counts.told:
        print("\nMissed or wrong:\n\n" + "\n".join(f"- {line}" for line in counts.told))
    beside = ", ".join(f"{code} {count}" for code, count in sorted(counts.beside.items()))
    print(f"\nBeside what was planted, on healthy twins (not judged): {beside or 'nothing'}.")


if __name__ == "__main__":
    main()
