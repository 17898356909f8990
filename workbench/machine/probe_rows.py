"""Rows of the preflight about what was tried: types, attention, and what compiling needs."""

from collections.abc import Sequence

from workbench import chips
from workbench.machine.accelerators import DeviceInfo
from workbench.machine.attention import AttentionBackEnd, attention_back_ends
from workbench.machine.check import Check
from workbench.machine.dtypes import DtypeProbe, factor_text, probe
from workbench.machine.matmul_modes import MatmulMode, matmul_modes
from workbench.machine.toolchain import compile_lacks, cpp_compiler

SLOW = 1.5
"""Own choice: from this ratio to fp32 on, a type that should be faster is worth a line."""


def probe_rows(torch: str | None, found: Sequence[DeviceInfo]) -> list[Check]:
    """Rows for the CPU and for the first device of each type; none without torch."""
    if torch is None:
        return []
    rows: list[Check] = []
    for name, device in probed_names(found).items():
        rows += [] if device is None else [tensor_core_row(device)]
        shown = "CPU" if device is None else name
        rows += [
            dtype_row(shown, probe(name)),
            mode_row(shown, matmul_modes(name)),
            attention_row(shown, attention_back_ends(name)),
        ]
    return rows


def probed_names(found: Sequence[DeviceInfo]) -> dict[str, DeviceInfo | None]:
    """What is probed, as torch names it: the CPU, and the first device of each type."""
    names: dict[str, DeviceInfo | None] = {"cpu": None}
    for kind in sorted({device.type for device in found}):
        first = next(device for device in found if device.type == kind)
        names[f"{'cuda' if kind == 'hip' else kind}:{first.index}"] = first
    return names


def dtype_row(device: str, probes: Sequence[DtypeProbe]) -> Check:
    """What each type costs against fp32, and which are not worth a try."""
    slow = [each for each in probes if each.native is False and (each.factor or 0) > SLOW]
    slow += [each for each in probes if each.native is not False and (each.factor or 0) > SLOW]
    names = " and ".join(f"{each.dtype} ({times_text(each)})" for each in slow)
    return Check(
        name=f"{device} precision",
        value="; ".join(_said(each) for each in probes if each.dtype != "fp32"),
        remedy=f"slower than fp32 here: {names}" if slow else None,
    )


def mode_row(device: str, found: Sequence[MatmulMode]) -> Check:
    """What torch.set_float32_matmul_precision changes."""
    parts = []
    for each in found:
        if each.acts is None:
            parts.append(f"{each.mode} not tried")
        elif not each.acts:
            parts.append(f"{each.mode} changes nothing")
        elif each.ratio is not None:
            parts.append(f"{each.mode} takes {factor_text(each.ratio)} × the time of highest")
    return Check(name=f"{device} fp32 modes", value="; ".join(parts))


def _said(each: DtypeProbe) -> str:
    if not each.supported:
        return f"{each.dtype} no" + (f" ({each.reason})" if each.reason else "")
    words = {True: "native", False: "imitated", None: "cannot tell whether native"}
    said = f"{each.dtype} {words[each.native]}"
    if each.factor is not None:
        return f"{said}, {times_text(each)}"
    return said + (f" ({each.reason})" if each.reason else "")


def times_text(each: DtypeProbe) -> str:
    """The time that products and convolutions take: ``37 to 54 × the time of fp32``."""
    ratios = sorted(r for r in (each.matmul_ratio, each.convolution_ratio) if r is not None)
    texts = dict.fromkeys(factor_text(ratio) for ratio in ratios)
    return f"{' to '.join(texts)} × the time of fp32"


def attention_row(device: str, found: Sequence[AttentionBackEnd]) -> Check:
    """Which implementations of attention work."""
    parts = []
    for each in found:
        if each.dtypes:
            parts.append(f"{each.name} ({', '.join(each.dtypes)})")
    untried = [each.name for each in found if each.dtypes is None]
    if untried:
        parts.append(f"not tried: {', '.join(untried)}")
    return Check(name=f"{device} attention", value="; ".join(parts) or "none works")


def tensor_core_row(device: DeviceInfo) -> Check:
    """Whether lower precision can be faster at all."""
    has = chips.tensor_cores(device.type, device.name, device.arch)
    value = "cannot tell"
    if has is not None:
        value = "yes" if has else "no: lower precision saves memory, hardly time"
    return Check(name=f"Tensor cores {device.type}:{device.index}", value=value)


def compile_row(kinds: Sequence[str]) -> Check:
    """What torch.compile needs for each kind of device."""
    lacks = {kind: lack for kind in kinds if (lack := compile_lacks(kind))}
    if not lacks:
        value = f"C++ compiler {cpp_compiler()}, Python headers"
        others = [kind for kind in kinds if kind != "cpu"]
        value += f", Triton for {' and '.join(others)}" if others else ""
        return Check(name="torch.compile", value=value)
    return Check(
        name="torch.compile",
        value="; ".join(f"for {kind} it lacks {lack}" for kind, lack in lacks.items()),
        state="warning",
        remedy="on Debian: apt-get install g++ python3-dev",
    )
