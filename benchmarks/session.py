"""What always-on telemetry costs a step of about 10 ms, and how soon a switch acts.

Cost: half of the steps, by chance, have the meter and its marks, the others none. A round gives the
ratio of the two medians; the median over rounds is given with its 95 % interval (bootstrap over
rounds). On the CPU a step is measured by the processor time of its thread, which others disturb
little; set OMP_NUM_THREADS=1. What the sampler's thread takes beside it is added. At most 1 % is
shown where the whole interval lies below it, and refuted where all of it lies above.

Switching: settings are asked for at random moments of a session that trains, and the time until
they are in force is compared with 100 ms and a step.

    python -m benchmarks.session [--rounds 120] [--steps 40] [--clicks 30]
"""

import argparse
import dataclasses
import random
import statistics
import sys
import tempfile
import time

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from workbench.recording.telemetry import Telemetry
from workbench.recording.telemetry_meter import Meter, StepFacts, meter_for
from workbench.recording.telemetry_system import TelemetrySampler
from workbench.session import Session
from workbench.settings import Settings
from workbench.workload import Training, Workload, prepare
from workbench.workload.placement import samples_in

LIMIT = 1.01
"""Telemetry may cost 1 % of a 10 ms step."""
APPLIED_MS = 100.0
"""A switch may take so long, and a step."""
DRAWS = 4000
SWITCHES = {
    "of the step": (Settings(clip_norm=1.0), Settings()),
    "of the loader": (Settings(batch_size=32), Settings()),
    "of the loader's workers": (Settings(workers=1), Settings()),
}


def loop(device: str, width: int) -> Workload:
    """A loop whose step takes about 10 ms on two CPU cores."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    batches = [(torch.randn(64, width), torch.randn(64, width)) for _ in range(8)]
    return Workload(model, batches, loss=F.mse_loss, optimizer=optimizer, device=device)


def step(training: Training, meter: Meter | None, number: int) -> None:
    """One step, measured by telemetry or not."""
    training.control.watch = meter
    if meter is None:
        training.step(next(training.batches()))
        return
    meter.begin_input()
    batch = next(training.batches())
    meter.end_input()
    samples = samples_in(batch)
    loss = training.step(batch)
    facts = StepFacts(step=number, epoch=0, change=0, profiled=False, samples=samples)
    meter.end_step(facts, loss)


def turns(training: Training, steps: int, telemetry: Telemetry) -> tuple[float, float]:
    """Median time of a step without telemetry, and with it; chance says which step is measured."""
    device = training.device
    clock = time.thread_time_ns if device.type == "cpu" else time.perf_counter_ns
    meter = meter_for(device, telemetry)
    times: tuple[list[int], list[int]] = ([], [])
    # By chance: the allocator has habits of its own that repeat every second step.
    sides = [0, 1] * (steps // 2)
    random.shuffle(sides)
    for number, side in enumerate(sides):
        training.synchronize()
        began = clock()
        step(training, meter if side else None, number)
        training.synchronize()
        times[side].append(clock() - began)
    return statistics.median(times[0]), statistics.median(times[1])


def interval(values: list[float]) -> tuple[float, float, float]:
    """The median between the bounds of its 95 % interval, by drawing rounds anew."""
    chance = random.Random(0)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(DRAWS))
    low, high = medians[int(0.025 * DRAWS)], medians[int(0.975 * DRAWS)]
    return low, statistics.median(values), high


def verdict(low: float, high: float) -> str:
    """What an interval of the whole cost says about the limit."""
    if high <= LIMIT:
        return "at most 1 %: shown"
    return "at most 1 %: refuted" if low > LIMIT else "at most 1 %: not shown (more rounds)"


def cost(asked: argparse.Namespace) -> str:
    """Measure what telemetry costs; the verdict."""
    telemetry, rows = Telemetry(), list[tuple[float, float]]()
    with prepare(loop(asked.device, asked.width)) as training:
        device = training.device
        turns(training, asked.steps, telemetry)
        sampler = TelemetrySampler(
            telemetry, waiting=lambda: None, workers=lambda: 0, device=lambda: device
        )
        sampler.start()
        began = time.perf_counter_ns()
        rows += [turns(training, asked.steps, telemetry) for _ in range(asked.rounds)]
        took = time.perf_counter_ns() - began
        sampler.stop()
    low, ratio, high = interval([b / a for a, b in rows])
    beside = sampler.cost_ns / took
    said = verdict(low + beside, high + beside)
    print(
        f"step {statistics.median(a for a, _ in rows) / 1e6:.2f} ms; with telemetry {ratio:.4f} "
        f"times (95 % interval {low:.4f} to {high:.4f}, {asked.rounds} rounds), and {beside:.2%} "
        f"of one processor beside it; {said}"
    )
    return said


def applied(asked: argparse.Namespace) -> bool:
    """Measure how soon switches act; whether the median of each kind is soon enough."""
    work, soon = loop(asked.device, asked.width), True
    rows = TensorDataset(torch.randn(4096, asked.width), torch.randn(4096, asked.width))
    work = dataclasses.replace(work, data=DataLoader(rows, batch_size=64, shuffle=True))
    chance = random.Random(0)
    with tempfile.TemporaryDirectory() as folder, Session(work, folder=folder) as session:
        session.start()
        session.wait(20, 120)
        for what, pair in SWITCHES.items():
            known = len(session.changes)
            for click in range(asked.clicks):
                time.sleep(chance.uniform(0.02, 0.06))
                session.replace(pair[click % 2])
                while len(session.changes) <= known + click:
                    time.sleep(0.005)
            took = sorted(
                ((change.applied_ns or 0) - change.asked_ns) / 1e6
                for change in session.changes[known:]
            )
            times = session.telemetry.columns()
            step = statistics.median(times["step_ns"][-500:]) / 1e6
            middle, late = statistics.median(took), took[int(0.95 * (len(took) - 1))]
            good = middle <= APPLIED_MS + step
            soon &= good
            print(
                f"a switch {what} acts after {middle:.1f} ms (95 % within {late:.1f} ms, "
                f"{len(took)} times); at most {APPLIED_MS:g} ms and a step of {step:.1f} ms: "
                f"{'yes' if good else 'no'}"
            )
    return soon


def main() -> int:
    """Measure, print a line each, and fail where a limit is missed beyond doubt."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=120)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--clicks", type=int, default=30)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    good = not cost(asked).endswith("refuted")
    return 0 if applied(asked) and good else 1


if __name__ == "__main__":
    sys.exit(main())
