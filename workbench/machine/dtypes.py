"""Which types a device computes by itself, which it only imitates, and what each costs."""

from dataclasses import dataclass
from typing import Any

from workbench import chips
from workbench.machine.cpu_flags import cpu_flags, flags_tell
from workbench.machine.probing import Found, known_trial, trial_of
from workbench.machine.trial import one_dnn, torch_tells
from workbench.units import count_text

LOW_PRECISION = ("bf16", "fp16")
DTYPES = ("fp32", "tf32", "bf16", "fp16", "fp8")
TIME_LIMIT_S = 2.0


@dataclass(frozen=True, kw_only=True)
class DtypeProbe:
    """What was found about one type on one device; ``None`` where it was not measured."""

    dtype: str
    """fp32, tf32, bf16, fp16 or fp8."""
    supported: bool
    """Whether torch computes a product in it here, however slowly."""
    native: bool | None
    """Whether the device has instructions for it; otherwise it converts to fp32 and back."""
    matmul_ratio: float | None
    """Time of a matrix product ÷ time in fp32: medians, the same sizes, taking turns."""
    convolution_ratio: float | None
    reason: str | None
    """Why it is not supported, or what was not measured."""
    matmul_size: int | None = None
    """Side of the square matrices of ``matmul_ratio``; at larger sizes an imitated type is often
    slower still."""

    @property
    def factor(self) -> float | None:
        """The larger of the two ratios: what it costs where it costs most."""
        known = [r for r in (self.matmul_ratio, self.convolution_ratio) if r is not None]
        return max(known, default=None)

    @property
    def cost(self) -> str | None:
        """The same in words; ``None`` where nothing was measured."""
        said: list[str] = []
        for what, ratio in (
            ("a matrix product", self.matmul_ratio),
            ("a convolution", self.convolution_ratio),
        ):
            if ratio is not None:
                takes = "takes " if not said else ""
                said.append(f"{what} {takes}{factor_text(ratio)} ×")
        return f"{' and '.join(said)} as long as in fp32 (measured)" if said else None

    def to_json(self) -> dict[str, Any]:
        """Plain values for ``run.json``."""
        return {
            "dtype": self.dtype,
            "supported": self.supported,
            "native": self.native,
            "matmul_ratio": self.matmul_ratio,
            "convolution_ratio": self.convolution_ratio,
            "reason": self.reason,
        }


def factor_text(ratio: float) -> str:
    """Two significant digits, which is what tiny products tell."""
    rounded = float(f"{ratio:.2g}")
    return count_text(rounded) if rounded >= 10 else f"{rounded:g}"


def probe(device: str = "cpu", time_limit_s: float = TIME_LIMIT_S) -> tuple[DtypeProbe, ...]:
    """Time a tiny product and convolution in every type, in a process of its own.

    The process is ended when the time is over, so an imitated type cannot hang the caller, and no
    device is opened in this process. The answers are kept in the user's cache for this machine and
    these versions.

    Args:
        device: As torch names it: ``cpu``, ``cuda:0``, ``xpu``, ``mps``.
        time_limit_s: Seconds for the measurements, on the CPU of its own thread: beside other
            work up to four times as long. Importing torch and opening the device come on top, at
            most 90 s.

    Returns:
        One answer a type, always all of ``DTYPES``.
    """
    return _answers(device, trial_of(device, time_limit_s))


def known_probe(device: str = "cpu") -> tuple[DtypeProbe, ...] | None:
    """The same if it is known on this machine already; ``None``, without any work, if not."""
    found = known_trial(device)
    return None if found is None else _answers(device, found)


def _answers(device: str, found: Found) -> tuple[DtypeProbe, ...]:
    return tuple(_answer(device, found, dtype) for dtype in DTYPES)


def _answer(device: str, found: Found, dtype: str) -> DtypeProbe:
    native = _native(device, found["device"] or {}, dtype)
    said = found["dtypes"].get(dtype) or _unsaid(found, dtype, native)
    reason = said.get("reason")
    if said.get("convolution_error"):
        reason = f"no convolution: {said['convolution_error']}"
    return DtypeProbe(
        dtype=dtype,
        supported=said["supported"],
        native=native,
        matmul_ratio=said.get("matmul_ratio"),
        convolution_ratio=said.get("convolution_ratio"),
        reason=reason,
        matmul_size=said.get("matmul_size"),
    )


def _unsaid(found: Found, dtype: str, native: bool | None) -> dict[str, Any]:
    """What stands for a type that the trial did not come to: at best what the device names."""
    if found["device"] is None:
        return {"supported": False, "reason": found["reason"] or "the device did not answer"}
    if found.get("hung") == dtype:
        return {"supported": True, "reason": found["reason"]}
    return {"supported": bool(native), "reason": "not measured: the time was over before"}


def _native(device: str, described: dict[str, Any], dtype: str) -> bool | None:
    if device == "cpu":
        if dtype not in LOW_PRECISION:
            return dtype == "fp32"
        library = described.get("onednn", {}).get(dtype)
        return _both(library, flags_tell(dtype, cpu_flags()), described.get("torch", {}).get(dtype))
    if device.startswith("mps"):
        return {"fp32": True, "fp16": True, "bf16": None}.get(dtype, False)
    if device.startswith("xpu"):
        flag = {"fp16": "has_fp16", "bf16": "has_bfloat16_conversions"}.get(dtype)
        return True if dtype == "fp32" else described.get(flag or "")
    kind = device.partition(":")[0]
    return chips.native(dtype, kind, described.get("name"), described.get("arch"))


def native_dtypes() -> dict[str, bool | None]:
    """Whether bf16 and fp16 are native on this CPU; ``None`` where nobody tells.

    An imitated type converts to fp32 and back and was measured up to 500 times slower
    (pytorch #146508). oneDNN's own check counts AVX-512 without bf16 instructions, and AVX2 that
    only converts fp16, as support, so the instructions themselves must be there as well.
    """
    try:
        import torch
    except ImportError:
        return dict.fromkeys(LOW_PRECISION)
    flags = cpu_flags()
    return {
        name: _both(one_dnn(torch, name), flags_tell(name, flags), torch_tells(torch, name))
        for name in LOW_PRECISION
    }


def _both(library: bool | None, flags: bool | None, torchs: bool | None) -> bool | None:
    """Native is what the library uses and the processor has; its flags know better than torch."""
    if library is not True:
        return library
    return torchs if flags is None else flags
