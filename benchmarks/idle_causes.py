"""How often the causes of idle time are right, on random loops of a simulated host and device.

Run it as ``python benchmarks/idle_causes.py [--traces 200]``. It prints the confusion table that
``docs/attribution.md`` keeps; rows are true causes, columns answers, in percent of all idle time.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.simulator.judging import Judgement, answered, judge, judged, simulated
from workbench.analysis.causes import CAUSES

VERDICTS = ("right", "by definition", "unknown", "wrong")


def table(found: Judgement) -> str:
    """Rows of true causes, columns of answers, in percent of all idle time."""
    used = [cause for cause in CAUSES if any(cause in (cell[0], cell[2]) for cell in found.cells)]
    sums: Counter[tuple[str, str]] = Counter()
    for (cause, _, answer), ns in found.cells.items():
        sums[cause, answer] += ns
    lines = ["| true \\ answered | " + " | ".join(used) + " |", "|---" * (len(used) + 1) + "|"]
    for cause in used:
        cells = [_percent(sums[cause, answer], found.total) for answer in used]
        lines.append(f"| {cause} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _percent(ns: int, total: int) -> str:
    return f"{100 * ns / total:.2f}" if ns else "·"


def deviations(found: Judgement, verdict: str) -> str:
    """What is judged so, the largest first: share, true cause, answer."""
    sums: Counter[tuple[str, str]] = Counter()
    for cell, ns in found.cells.items():
        if judged(cell) == verdict:
            sums[cell[0], cell[2]] += ns
    return "\n".join(
        f"| {100 * ns / found.total:.2f} | {cause} | {answer} |"
        for (cause, answer), ns in sums.most_common(8)
        if ns > 1e-4 * found.total
    )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=200)
    given = parser.parse_args()
    found, single = Judgement(), []
    for seed in range(given.traces):
        made = simulated(seed)
        cells = judge(made, answered(made))
        found.add(cells)
        single.append(Judgement())
        single[-1].add(cells)
    print(f"{given.traces} random loops, {found.total / 1e9:.2f} s of idle time\n")
    print("| verdict | % of all idle time | mean of the traces, % | worst trace, % |")
    print("|---|---|---|---|")
    for verdict in VERDICTS:
        shares = [100 * each.share(verdict) for each in single]
        worst = min(shares) if verdict == "right" else max(shares)
        mean = sum(shares) / len(shares)
        print(f"| {verdict} | {100 * found.share(verdict):.2f} | {mean:.2f} | {worst:.2f} |")
    print(f"\n{table(found)}")
    for verdict in ("by definition", "wrong"):
        print(f"\n{verdict}:\n\n| % | true | answered |\n|---|---|---|")
        print(deviations(found, verdict))


if __name__ == "__main__":
    main()
