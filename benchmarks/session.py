"""What always-on telemetry costs a step of about 10 ms: steps with it and without it take turns.

Half of the steps, by chance, have the meter and its marks, the others none; the ratio is that of
their medians. On the CPU a step is measured by the processor time of its thread, which others
disturb little; set OMP_NUM_THREADS=1. What the sampler's thread takes beside it is added.

    python -m benchmarks.session [--rounds 20] [--steps 40]
"""

import argparse
import random
import statistics
import sys
import time

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from workbench.recording.telemetry import Telemetry
from workbench.recording.telemetry_meter import Meter, StepFacts, meter_for
from workbench.recording.telemetry_system import TelemetrySampler
from workbench.workload import Training, Workload, prepare
from workbench.workload.placement import samples_in

LIMIT = 1.01
"""Telemetry may cost 1 % of a 10 ms step."""


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


def main() -> int:
    """Measure, print one line, and fail beyond the limit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
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
    ratios = sorted(b / a for a, b in rows)
    low, ratio, high = statistics.quantiles(ratios, n=4)
    beside = sampler.cost_ns / took
    print(
        f"step {statistics.median(a for a, _ in rows) / 1e6:.2f} ms; with telemetry {ratio:.4f} "
        f"times (middle half {low:.4f} to {high:.4f}, {asked.rounds} rounds), and {beside:.2%} of "
        f"one processor beside it; limit {LIMIT}"
    )
    return 0 if low + beside <= LIMIT else 1


if __name__ == "__main__":
    sys.exit(main())
