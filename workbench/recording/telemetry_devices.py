"""What drivers tell of the device that trains: how busy it is, its power, its clock.

NVIDIA's is asked through nvidia-ml-py, AMD's through amdsmi, Intel's through torch itself. None of
them opens a context on the device, and a number that a driver does not give is left out.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol

from workbench.machine.nvidia import NvidiaSampler

BUSY, POWER, CLOCK = "device_percent", "device_power_w", "device_clock_mhz"


class DeviceReader(Protocol):
    """Asks one driver until it is closed."""

    def read(self, device: Any) -> dict[str, float | None]:
        """What is known of a ``torch.device`` now, by the telemetry's names of columns."""

    def close(self) -> None:
        """Ask no more."""


def reader_for(device: Any) -> DeviceReader | None:
    """Who can be asked about this ``torch.device``; ``None``: nobody."""
    import torch

    if device.type == "cuda":
        return AmdReader() if torch.version.hip else NvidiaReader()
    if device.type == "xpu":
        return TorchReader(torch.xpu)
    return None


class NvidiaReader:
    """NVIDIA devices, by the driver's management library."""

    def __init__(self) -> None:
        self._driver = NvidiaSampler()
        self._driver.open()

    def read(self, device: Any) -> dict[str, float | None]:
        """Of the driver's last sample period, at most a second."""
        for sample in self._driver.read():
            if sample.device == (device.index or 0):
                return {
                    BUSY: sample.utilization_percent,
                    POWER: sample.power_w,
                    CLOCK: sample.clock_mhz,
                }
        return {}

    def close(self) -> None:
        """Let go of the library."""
        self._driver.close()


class AmdReader:
    """AMD devices, by amdsmi; torch knows which of its handles is the device of a number."""

    def __init__(self) -> None:
        self._smi: Any = None
        self._handle: tuple[Any, Any] | None = None
        with suppress(ImportError, OSError):  # the library of the driver is not there
            amdsmi: Any = import_module("amdsmi")
            with suppress(amdsmi.AmdSmiException):
                amdsmi.amdsmi_init()
                self._smi = amdsmi

    def read(self, device: Any) -> dict[str, float | None]:
        """The driver's averages; ``N/A`` is what it does not know."""
        smi = self._smi
        if smi is None:
            return {}
        handle = self._of(device)
        if handle is None:
            return {}
        return {
            BUSY: self._asked(smi.amdsmi_get_gpu_activity, ("gfx_activity",), handle),
            POWER: self._asked(smi.amdsmi_get_power_info, _AMD_POWER, handle),
            CLOCK: self._asked(
                smi.amdsmi_get_clock_info, ("clk", "cur_clk"), handle, smi.AmdSmiClkType.GFX
            ),
        }

    def close(self) -> None:
        """The library stays open: torch's own questions use it, too."""
        self._smi = self._handle = None

    def _of(self, device: Any) -> Any:
        import torch

        if self._handle is None or self._handle[0] != device:
            found = None
            with suppress(RuntimeError, AttributeError, IndexError, ImportError):
                found = torch.cuda._get_amdsmi_handler(device)
            self._handle = device, found
        return self._handle[1]

    def _asked(
        self, question: Callable[..., Mapping[str, Any]], names: tuple[str, ...], *about: Any
    ) -> float | None:
        try:
            said = question(*about)
        except self._smi.AmdSmiException:
            return None
        return next((n for name in names if (n := _number(said.get(name))) is not None), None)


_AMD_POWER = ("current_socket_power", "average_socket_power")
"""Newer devices tell the first, older ones the second."""


class TorchReader:
    """Devices whose driver torch asks by itself; what it may not ask once is not asked again.

    Args:
        module: Torch's module of the device, such as ``torch.xpu``.
    """

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._questions = {BUSY: "utilization", POWER: "power_draw", CLOCK: "clock_rate"}

    def read(self, device: Any) -> dict[str, float | None]:
        """Two of the answers take torch a tenth of a second each."""
        found: dict[str, float | None] = {}
        for column, name in tuple(self._questions.items()):
            ask = getattr(self._module, name, None)  # older than torch 2.13
            try:
                found[column] = None if ask is None else _number(ask(device))
            except (RuntimeError, OSError, ImportError):  # rights are lacking, or the library is
                ask = None
            if ask is None:
                self._questions.pop(column)
        return found

    def close(self) -> None:
        """Nothing is held."""


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)
