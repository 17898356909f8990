"""How long ranks take to start and end, beyond the import of torch that each of them needs.

Run it as ``python benchmarks/ranks_start.py [--ranks 2] [--times 3]``, on a quiet machine. torchrun
imports torch before it starts the ranks, which import it again: both imports are measured in a
process of their own and taken off. The goal is at most 5 s.
"""

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from workbench.parallel.launch import launch

GOAL_S = 5.0


def nothing(rank: Any, payload: dict[str, Any]) -> int:
    """What every rank does: form the group and leave it."""
    rank.join("gloo", 60)
    return int(rank.number)


def seconds(run: Any, times: int) -> float:
    """The shortest of several runs: what else runs only adds."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        run()
        found.append(time.perf_counter() - began)
    print("  each", [round(each, 2) for each in found], "median", statistics.median(found))
    return min(found)


def main() -> int:
    """Measure, say it, and fail beyond the goal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--times", type=int, default=3)
    asked = parser.parse_args()
    program = [sys.executable, "-c", "import torch"]
    imports = seconds(lambda: subprocess.run(program, check=True), asked.times)
    whole = seconds(lambda: launch(nothing, {}, world_size=asked.ranks), asked.times)
    beyond = whole - 2 * imports
    print(f"import torch {imports:.2f} s, {asked.ranks} ranks {whole:.2f} s")
    print(f"beyond two imports {beyond:.2f} s (goal: at most {GOAL_S:g} s)")
    return 0 if beyond <= GOAL_S else 1


if __name__ == "__main__":
    sys.exit(main())
