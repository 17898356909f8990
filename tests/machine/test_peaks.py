"""Peaks: what the lines of the trial mean, what is kept, and that the real child answers."""

import json
from pathlib import Path
from typing import Any

import pytest

from workbench.analysis.costs.peaks import peaks_from
from workbench.machine import peaks, probing
from workbench.machine.competing_load import Load

LINES: list[dict[str, Any]] = [
    {"device": "a device", "threads": 2},
    {"copy": 1 << 20, "bytes_per_s": 80e9},
    {"copy": 1 << 28, "bytes_per_s": 20e9},
    {"host_to_device": 12e9},
    {"matmul": "fp32", "side": 512, "flops_per_s": 80e9},
    {"matmul": "fp32", "side": 1024, "flops_per_s": 100e9},
    {"convolution": "fp32", "side": 28, "flops_per_s": 120e9},
    {"matmul": "bf16", "side": 512, "flops_per_s": 300e9},
]


def text(lines: list[dict[str, Any]]) -> str:
    return "\n".join(json.dumps(line) for line in lines)


def test_a_peak_is_the_higher_of_product_and_convolution() -> None:
    found = peaks.read(text([*LINES, {"whole": True}]), "cuda:0")
    assert found is not None
    assert found["flops_per_s"] == {"fp32": 120e9, "bf16": 300e9}
    assert found["bytes_per_s"] == 20e9, "the largest copy: smaller ones stay in a cache"
    assert found["whole"]
    held = peaks_from(found)
    assert held is not None
    assert held.bandwidth(1000) == 80e9
    assert held.bandwidth(1 << 24) == 20e9
    assert held.host_to_device == 12e9
    assert "measured on this machine on 20" in held.source


def test_a_trial_that_was_cut_short_keeps_what_it_has_and_is_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(probing.VARIABLE, str(tmp_path))
    monkeypatch.setattr(peaks, "run_child", lambda *_: (text(LINES) + '\n{"mat', "killed", True))
    found = peaks.measure("cpu")
    assert found is not None
    assert not found["whole"]
    assert peaks.known_peaks("cpu") is None


def test_a_device_that_does_not_answer_has_no_peaks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(probing.VARIABLE, str(tmp_path))
    monkeypatch.setattr(peaks, "run_child", lambda *_: ("", "no such device", True))
    assert peaks.measure("cuda:7") is None


def crowded(monkeypatch: pytest.MonkeyPatch, share: float) -> None:
    """What others took of the processors while the peaks were measured."""
    load = Load(load_average=None, others_cpu_share=share, steal_share=None)
    monkeypatch.setattr(peaks, "load_during", lambda work: (work(), load))


@pytest.mark.parametrize(
    ("device", "share", "kept"), [("cpu", 0.2, True), ("cpu", 0.3, False), ("cuda:0", 0.9, True)]
)
def test_what_a_busy_processor_does_is_no_peak_to_remember(
    device: str, share: float, kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(probing.VARIABLE, str(tmp_path))
    monkeypatch.setattr(peaks, "run_child", lambda *_: (text([*LINES, {"whole": True}]), "", True))
    crowded(monkeypatch, share)
    found = peaks.measure(device)
    assert found is not None
    assert found["others_cpu_share"] == share
    assert ("other programs used 30% of the processors" in found["source"]) is not kept
    assert (peaks.known_peaks(device) is not None) is kept


def test_measured_once_and_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(probing.VARIABLE, str(tmp_path))
    asked: list[str] = []

    def child(_: Any, device: str, *__: Any) -> tuple[str, None, bool]:
        asked.append(device)
        return text([*LINES, {"whole": True}]), None, True

    monkeypatch.setattr(peaks, "run_child", child)
    crowded(monkeypatch, 0.0)
    assert peaks.measure("cpu") == peaks.measure("cpu")
    assert asked == ["cpu"]
    peaks.measure("cpu", again=True)
    assert asked == ["cpu", "cpu"]


def test_the_clock_is_that_of_the_fastest_core(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("cpu MHz\t\t: 2100.5\nmodel name: x\ncpu MHz\t\t: 3400.0\n")
    assert peaks.clock_mhz("cpu", info) == 3400.0
    assert peaks.clock_mhz("cpu", tmp_path / "none") is None


@pytest.mark.slow
def test_the_real_child_measures_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(probing.VARIABLE, str(tmp_path))
    found = peaks.measure("cpu", 30.0)
    assert found is not None
    assert found["flops_per_s"]["fp32"] > 1e8
    assert found["bytes_per_s"] > 1e7
