"""WB307, scenario P09: memory that grows because one autocast region keeps every cast weight."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import workbench as wb
from tests.findings.loops import Loop, fired, looped, of

KEPT, BATCH = 32_768, 8_192


def memory(loop: Loop, ts: float, size: int, total: int, address: int) -> None:
    loop.trace.events.append(
        {
            "ph": "i",
            "cat": "cpu_instant_event",
            "s": "t",
            "name": "[memory]",
            "pid": 100,
            "tid": 100,
            "ts": ts,
            "args": {
                "Total Reserved": 0,
                "Total Allocated": total,
                "Bytes": size,
                "Addr": address,
                "Device Id": -1,
                "Device Type": 0,
            },
        }
    )


def growing(*, kept: bool, inside: bool = True) -> Loop:
    """Steps that cast a weight of 32 kB and take a batch of 8 kB, which is given back."""
    live = [1_000_000]

    def body(loop: Loop, at: float) -> None:
        number = round(at / 1000)
        loop.trace.op("aten::_to_copy" if inside else "aten::empty", at + 100, 50)
        live[0] += KEPT
        memory(loop, at + 110, KEPT, live[0], 1000 + number)
        memory(loop, at + 300, BATCH, live[0] + BATCH, 5)
        memory(loop, at + 400, -BATCH, live[0], 5)
        if not kept:
            live[0] -= KEPT
            memory(loop, at + 900, -KEPT, live[0], 1000 + number)

    return looped(body, 1000, gpu=False)


def test_p09_growth_by_casts_that_are_kept_is_named(tmp_path: Path) -> None:
    finding = fired(growing(kept=True).run(tmp_path), "WB307")
    assert finding.evidence["growth_bytes_per_step"] == KEPT
    assert finding.evidence["kept_cast_bytes_per_step"] == KEPT
    assert finding.setting == {"autocast_cache": False}
    assert "cache_enabled=False" in finding.advice


@pytest.mark.parametrize(
    "loop",
    [growing(kept=False), growing(kept=True, inside=False)],
    ids=["given back in its step", "grows by something else"],
)
def test_p09_stays_silent(tmp_path: Path, loop: Loop) -> None:
    assert of(loop.run(tmp_path), "WB307") is None


def test_p09_without_memory_records_nothing_is_said(tmp_path: Path) -> None:
    def body(loop: Loop, at: float) -> None:
        loop.trace.op("aten::_to_copy", at + 100, 50)

    assert of(looped(body, 1000, gpu=False).run(tmp_path), "WB307") is None


@pytest.mark.parametrize("around_all", [True, False], ids=["around the loop", "in each step"])
def test_p09_as_torch_does_it(tmp_path: Path, around_all: bool) -> None:
    """A new layer of 128 × 128 in every iteration, under autocast on the CPU."""
    x = torch.randn(4, 128)

    def loop(capture: Any) -> None:
        for _ in range(14):
            with torch.autocast("cpu", torch.bfloat16):
                nn.Linear(128, 128)(x).sum().item()
            capture.step()

    with wb.capture(tmp_path / "run", record=wb.Record(memory=True), warmup=2, steps=10) as cap:
        if around_all:
            with torch.autocast("cpu", torch.bfloat16):
                loop(cap)
        else:
            loop(cap)
    assert (of(cap.run, "WB307") is not None) == around_all
