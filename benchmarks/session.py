"""What always-on telemetry costs a step of about 10 ms: turns with it and without it.

The same loop runs in blocks that take turns: with the meter, the marks in the step and the
sampler's thread, and without any. The ratio is the median of pairs of blocks. On the CPU a step is
measured by the processor time of the whole process, which other programs do not disturb; set
OMP_NUM_THREADS=1, so that waiting threads do not count.

    python -m benchmarks.session [--rounds 20] [--steps 40]
"""

import argparse
import statistics
import sys
import time
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from workbench.recording.telemetry import Telemetry
from workbench.recording.telemetry_meter import StepFacts, meter_for
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


def block(training: Training, steps: int, telemetry: Telemetry | None) -> float:
    """Mean time of ``steps`` steps in nanoseconds."""
    batches = training.batches()
    device = training.device
    meter = None if telemetry is None else meter_for(device, telemetry)
    training.control.watch = meter
    sampler: Any = None
    if telemetry is not None:
        sampler = TelemetrySampler(
            telemetry, waiting=lambda: None, workers=lambda: 0, device=lambda: device
        )
        sampler.start()
    try:
        training.synchronize()
        clock = time.process_time_ns if device.type == "cpu" else time.perf_counter_ns
        began = clock()
        for step in range(steps):
            if meter is None:
                training.step(next(batches))
            else:
                meter.begin_input()
                batch = next(batches)
                meter.end_input()
                samples = samples_in(batch)
                loss = training.step(batch)
                facts = StepFacts(step=step, epoch=0, change=0, profiled=False, samples=samples)
                meter.end_step(facts, loss)
        training.synchronize()  # a device is not waited for in between
        took = (clock() - began) / steps
    finally:
        if sampler is not None:
            sampler.stop()
        training.control.watch = None
    return took


def main() -> int:
    """Measure, print one line, and fail beyond the limit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    telemetry = Telemetry()
    plain: list[float] = []
    measured: list[float] = []
    with prepare(loop(asked.device, asked.width)) as training:
        block(training, asked.steps, telemetry)
        for turn in range(asked.rounds):
            sides = (None, telemetry) if turn % 2 else (telemetry, None)
            for side in sides:
                middle = block(training, asked.steps, side)
                (plain if side is None else measured).append(middle)
    ratios = sorted(b / a for a, b in zip(plain, measured, strict=True))
    ratio = statistics.median(ratios)
    low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
    print(
        f"step {statistics.median(plain) / 1e6:.2f} ms; with telemetry {ratio:.4f} times "
        f"(middle half {low:.4f} to {high:.4f}, {asked.rounds} pairs); limit {LIMIT}"
    )
    return 0 if low <= LIMIT else 1  # beyond it by more than the pairs differ by


if __name__ == "__main__":
    sys.exit(main())
