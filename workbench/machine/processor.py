"""The model of the processor, such as ``AMD EPYC 7B13``: times of another one do not compare."""

import platform
from pathlib import Path

INFO = Path("/proc/cpuinfo")


def processor(info: Path = INFO) -> str | None:
    """Its model as the system tells it; ``None`` where it does not."""
    try:
        lines = info.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or None
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in ("model name", "Model", "cpu model") and value.strip():
            return value.strip()
    return platform.processor() or None
