"""How busy a device is, by what its driver says: libraries of drivers stand in for themselves."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from workbench.recording.telemetry import Telemetry
from workbench.recording.telemetry_devices import AmdReader, TorchReader, reader_for
from workbench.recording.telemetry_system import TelemetrySampler


def amd(monkeypatch: pytest.MonkeyPatch, **answers: Any) -> list[str]:
    """An amdsmi with one device whose handle is ``card 1``; what was asked is in the list."""
    asked: list[str] = []
    smi: Any = ModuleType("amdsmi")
    smi.AmdSmiException = type("AmdSmiException", (Exception,), {})
    smi.AmdSmiClkType = SimpleNamespace(GFX="gfx")
    smi.amdsmi_init = lambda: asked.append("init")

    def answer(name: str) -> Any:
        def ask(handle: str, *_: Any) -> Any:
            assert handle == "card 1"
            value = answers[name]
            if value is None:
                raise smi.AmdSmiException
            return value

        return ask

    for name in ("gpu_activity", "power_info", "clock_info"):
        setattr(smi, f"amdsmi_get_{name}", answer(name))
    monkeypatch.setitem(sys.modules, "amdsmi", smi)
    handles = {torch.device("cuda", 1): "card 1"}
    monkeypatch.setattr(torch.cuda, "_get_amdsmi_handler", handles.__getitem__, raising=False)
    monkeypatch.setattr(torch.version, "hip", "7.0")
    return asked


def test_amds_numbers_are_the_drivers_and_not_available_is_no_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    amd(
        monkeypatch,
        gpu_activity={"gfx_activity": 37, "umc_activity": 4},
        power_info={"current_socket_power": "N/A", "average_socket_power": 120},
        clock_info={"clk": "N/A", "cur_clk": "N/A"},
    )
    device = torch.device("cuda", 1)
    reader = reader_for(device)
    assert isinstance(reader, AmdReader)
    assert reader.read(device) == {
        "device_percent": 37.0,
        "device_power_w": 120.0,
        "device_clock_mhz": None,
    }


def test_a_question_that_amds_driver_refuses_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A guest of a virtual machine is told its clock only."""
    amd(monkeypatch, gpu_activity=None, power_info=None, clock_info={"clk": 2100})
    found = AmdReader().read(torch.device("cuda", 1))
    assert found == {"device_percent": None, "device_power_w": None, "device_clock_mhz": 2100.0}


def test_without_amds_library_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    assert AmdReader().read(torch.device("cuda", 0)) == {}


def test_what_intels_driver_may_not_tell_is_not_asked_again() -> None:
    calls: list[str] = []

    def busy(_: Any) -> float:
        calls.append("busy")
        raise RuntimeError("Try running with elevated privileges (e.g. sudo).")

    module: Any = ModuleType("torch.xpu")
    module.utilization, module.clock_rate = busy, lambda _: 1550.0  # a torch without power_draw
    reader = TorchReader(module)
    assert reader.read("xpu:0") == {"device_power_w": None, "device_clock_mhz": 1550.0}
    assert reader.read("xpu:0") == {"device_clock_mhz": 1550.0}
    assert calls == ["busy"]


def test_a_sample_holds_what_is_known_and_no_column_for_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    amd(
        monkeypatch,
        gpu_activity={"gfx_activity": 80},
        power_info=None,
        clock_info={"clk": 2100},
    )
    module = SimpleNamespace(memory_allocated=lambda _: 4096)
    monkeypatch.setattr(torch, "get_device_module", lambda _: module)
    telemetry = Telemetry()
    device = torch.device("cuda", 1)
    sampler = TelemetrySampler(
        telemetry, waiting=lambda: None, workers=lambda: 0, device=lambda: device
    )
    sampler.sample()
    known = telemetry.system()
    assert known["device_percent"].tolist() == [80.0]
    assert known["device_clock_mhz"].tolist() == [2100.0]
    assert known["device_memory_bytes"].tolist() == [4096.0]
    assert "device_power_w" not in known


@pytest.mark.parametrize("kind", ["cpu", "mps"])
def test_who_has_no_driver_to_ask_has_no_reader(kind: str) -> None:
    assert reader_for(torch.device(kind)) is None
