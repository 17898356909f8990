"""What a device can do at most, measured or by its datasheet, in one shape for every figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

DTYPES = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8")
STANDS_IN = {"tf32": ("tf32", "fp32"), "half": ("bf16", "fp16")}
"""Where a type has no peak of its own: a type that is computed in the same way."""


@dataclass(frozen=True, kw_only=True)
class Peaks:
    """The roof of one device."""

    device: str
    flops_per_s: Mapping[str, float]
    """By dtype, the higher of matrix product and convolution."""
    bytes_per_s: float | None
    """Reading plus writing of its own memory, for data larger than its caches."""
    cached: tuple[tuple[int, float], ...] = ()
    """Bytes of data, and bytes a second for as much: smaller data stays in a cache."""
    host_to_device: float | None = None
    device_to_host: float | None = None
    source: str
    """measured here, or the datasheet with its source and date."""
    measured: bool

    def flops(self, dtype: str | None) -> float | None:
        """Peak of a dtype; ``None`` where it is not known."""
        if dtype is None:
            return None
        names = STANDS_IN.get(dtype, (dtype,))
        return next((self.flops_per_s[n] for n in names if n in self.flops_per_s), None)

    def bandwidth(self, size: float) -> float | None:
        """Bytes a second for a working set of ``size`` bytes."""
        fitting = [rate for most, rate in self.cached if size <= most]
        known = [*fitting, *([] if self.bytes_per_s is None else [self.bytes_per_s])]
        return max(known, default=None)

    @property
    def ridge(self) -> Mapping[str, float]:
        """FLOPs a byte from which arithmetic and no longer memory is the limit, by dtype."""
        if not self.bytes_per_s:
            return {}
        return {name: peak / self.bytes_per_s for name, peak in self.flops_per_s.items()}

    def to_json(self) -> dict[str, Any]:
        """Plain values for ``run.json``."""
        return {
            "device": self.device,
            "flops_per_s": dict(self.flops_per_s),
            "bytes_per_s": self.bytes_per_s,
            "cached": [list(each) for each in self.cached],
            "host_to_device": self.host_to_device,
            "device_to_host": self.device_to_host,
            "source": self.source,
            "measured": self.measured,
        }


def peaks_from(found: Mapping[str, Any]) -> Peaks | None:
    """The peaks that ``to_json`` wrote; ``None`` for what is not of that form."""
    try:
        flops = {str(k): float(v) for k, v in found["flops_per_s"].items() if float(v) > 0}
        return Peaks(
            device=str(found["device"]),
            flops_per_s=flops,
            bytes_per_s=_rate(found["bytes_per_s"]),
            cached=_cached(found.get("cached") or ()),
            host_to_device=_rate(found.get("host_to_device")),
            device_to_host=_rate(found.get("device_to_host")),
            source=str(found["source"]),
            measured=bool(found["measured"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _rate(value: Any) -> float | None:
    return float(value) if value is not None and float(value) > 0 else None


def _cached(values: Sequence[Any]) -> tuple[tuple[int, float], ...]:
    return tuple((int(size), float(rate)) for size, rate in values if float(rate) > 0)
