"""How often the gate cries wolf, and how often it sees a slowdown of 15 %.

    python benchmarks/gate.py              # the table of docs/gate.md
    python benchmarks/gate.py --gates 200  # fewer simulated gates

Simulated: both sides draw step times with noise of one size, or with a drift between two Runs that
differs from gate to gate. Replayed: both sides are stretches of a recording of one loop on a
machine that others loaded, the same code throughout, with and without the waits for processors,
which ``--measure-both`` leaves out. The slowdown is planted by multiplying the head's times.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from workbench.gate.gate import gate_sides  # noqa: E402
from workbench.gate.sample import Sample, Side  # noqa: E402

BLOCKS, STEPS = 10, 20
SLOWER = 1.15
MS = 1e6
Blocks = list[np.ndarray]
Pair = tuple[Blocks, Blocks]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gates", type=int, default=1000)
    count = parser.parse_args().gates
    print("| noise | sides | gates | false alarms | 15 % slower found |")
    print("|---|---|---|---|---|")
    for name, pairs, turns in cases():
        alarms, found, made = rates(pairs, turns=turns, count=count)
        sides = "in turns" if turns else "one after the other"
        print(f"| {name} | {sides} | {made} | {alarms / made:.1%} | {found / made:.1%} |")


Source = Callable[[np.random.Generator], Pair]


def cases() -> Iterator[tuple[str, Source, bool]]:
    """What is judged: where the noise comes from, and whether the sides took turns."""
    yield "simulated, 2 % a step", lambda rng: simulated(rng, 0.02), True
    yield "simulated, 8 % a step", lambda rng: simulated(rng, 0.08), True
    yield "simulated, 2 % a step and 3 % from Run to Run", lambda rng: drifted(rng, 0.02), False
    wall, waits = np.load(ROOT / "tests" / "statistics" / "loaded_machine.npy").T * 1e3
    clean = np.maximum(wall - waits, 0.05 * wall)
    whole, left = "replayed, a loaded machine", "replayed, without waits for processors"
    yield left, lambda rng: replayed(rng, clean, turns=True), True
    yield whole, lambda rng: replayed(rng, wall, turns=True), True
    yield whole, lambda rng: replayed(rng, wall, turns=False), False


def rates(pairs: Source, *, turns: bool, count: int) -> tuple[int, int, int]:
    """How many gates failed over equal code, and how many over code that is slower."""
    alarms = found = 0
    for seed in range(count):
        base, head = pairs(np.random.default_rng(seed))
        alarms += failed(base, head, turns=turns)
        found += failed(base, [block * SLOWER for block in head], turns=turns)
    return alarms, found, count


def failed(base: Blocks, head: Blocks, *, turns: bool) -> bool:
    """Whether the gate fails, at its own level of 1 % and with 5 % allowed."""
    sides = [_side(each, "turns" if turns else None) for each in (base, head)]
    return gate_sides({"": sides[0]}, {"": sides[1]}).verdict == "fail"


def simulated(rng: np.random.Generator, noise: float) -> Pair:
    """Steps that scatter by ``noise`` and no more."""
    base, head = (10 * MS * np.exp(noise * rng.standard_normal((BLOCKS, STEPS))) for _ in "ab")
    return list(base), list(head)


def drifted(rng: np.random.Generator, noise: float) -> Pair:
    """The same, where every Run as a whole is off by 3 %: nothing within it tells."""
    base, head = simulated(rng, noise)
    off = np.exp(0.03 * rng.standard_normal(2))
    return [block * off[0] for block in base], [block * off[1] for block in head]


def replayed(rng: np.random.Generator, recording: np.ndarray, *, turns: bool) -> Pair:
    """A stretch of a recording, dealt out in blocks: A B B A, or first all of A."""
    start = rng.integers(len(recording))
    steps = np.arange(start, start + 2 * BLOCKS * STEPS)
    blocks = np.take(recording, steps, mode="wrap").reshape(-1, STEPS)
    if not turns:
        return list(blocks[:BLOCKS]), list(blocks[BLOCKS:])
    first = np.array([n % 4 in (0, 3) for n in range(2 * BLOCKS)])
    return list(blocks[first]), list(blocks[~first])


def _side(blocks: Blocks, turns: str | None) -> Side:
    times = Sample(blocks=tuple(tuple(map(float, block)) for block in blocks))
    return Side(name="run", samples={"step_time": times}, turns=turns)


if __name__ == "__main__":
    main()
