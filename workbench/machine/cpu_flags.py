"""Which low-precision instructions a processor names: Linux's flags, macOS's features."""

import platform
import subprocess
from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")
NATIVE_FLAGS = {
    "x86": {"bf16": ("avx512_bf16", "amx_bf16"), "fp16": ("avx512_fp16", "amx_fp16")},
    "arm": {"bf16": ("bf16", "svebf16"), "fp16": ("asimdhp", "fphp")},
}
"""Instructions that multiply in the type; f16c, for one, only converts."""
_X86, _ARM = ("x86_64", "amd64", "i386", "i686"), ("aarch64", "arm64")
_DARWIN = {"FEAT_BF16": "bf16", "FEAT_FP16": "asimdhp"}


def cpu_flags(cpuinfo: Path = CPUINFO) -> frozenset[str] | None:
    """The processor's instruction sets as Linux names them; ``None`` where no system tells."""
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        return _darwin_flags() if platform.system() == "Darwin" else None
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip().lower() in ("flags", "features"):
            return frozenset(value.split())
    return None


def flags_tell(dtype: str, flags: frozenset[str] | None) -> bool | None:
    """Whether the flags hold an instruction that multiplies in ``dtype``; ``None``: unknown."""
    machine = platform.machine().lower()
    family = "x86" if machine in _X86 else "arm" if machine in _ARM else None
    if flags is None or family is None:
        return None
    return any(flag in flags for flag in NATIVE_FLAGS[family][dtype])


def cpu_model(cpuinfo: Path = CPUINFO) -> str:
    """The processor's name, as far as the system tells it."""
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    found = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return found[0] if found else platform.machine()


def _darwin_flags() -> frozenset[str] | None:
    names = [f"hw.optional.arm.{name}" for name in _DARWIN]
    try:
        done = subprocess.run(  # noqa: S603 - a program of the system, with names of our own
            ["/usr/sbin/sysctl", *names], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    told = dict(line.split(":", 1) for line in done.stdout.splitlines() if ":" in line)
    wanted = zip(names, _DARWIN.values(), strict=True)
    return frozenset(flag for name, flag in wanted if told.get(name, "").strip() == "1")
