"""What this machine's devices can do at most: measured in seconds, in a process of its own.

The answers are kept in the user's cache for this machine and these versions, with the date and the
clock at that time. A busy machine measures too little: measure when nothing else runs.
"""

import json
import re
import tempfile
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.machine.competing_load import CROWDED, load_during
from workbench.machine.cpu_flags import CPUINFO, cpu_model
from workbench.machine.cpus import usable_cpus
from workbench.machine.nvidia import nvidia_devices
from workbench.machine.probing import cache_folder, key_of, run_child

SCHEMA = "workbench.peaks/1"
TRIAL = Path(__file__).with_name("peak_trial.py")
TIME_LIMIT_S = 8.0

Found = dict[str, Any]
"""``device``, ``flops_per_s`` by dtype, ``bytes_per_s``, ``cached``, ``host_to_device``,
``device_to_host``, ``source``, ``measured``, ``measured_on``, ``clock_mhz``,
``others_cpu_share``."""


def measure(
    device: str = "cpu", time_limit_s: float = TIME_LIMIT_S, *, again: bool = False
) -> Found | None:
    """The peaks of a device: from the cache, else measured in a child process.

    Args:
        device: As torch names it: ``cpu``, ``cuda:0``.
        time_limit_s: Seconds for the measurements; importing torch comes on top. The child ends
            itself after twice as long, wherever it hangs.
        again: Measure although there is an answer.

    Returns:
        Plain values, also for ``run.json``; ``None`` where the device did not answer.
    """
    known = None if again else known_peaks(device)
    if known is not None:
        return known
    (out, _, _), load = load_during(lambda: run_child(TRIAL, device, time_limit_s, usable_cpus()))
    found = read(out, device)
    if found is None:
        return None
    others = round(load.others_cpu_share, 3)
    found["others_cpu_share"] = others
    if device == "cpu" and others > CROWDED:
        found["source"] += (
            f", while other programs used {others:.0%} of the processors: too low, so it is not "
            "remembered"
        )
        return found
    _keep(device, found)
    return found


def known_peaks(device: str = "cpu") -> Found | None:
    """The same if it was measured on this machine already; starts nothing."""
    with suppress(OSError, RuntimeError, ValueError, KeyError, TypeError):
        kept = json.loads(_place(device).read_text(encoding="utf-8"))
        if kept["schema"] == SCHEMA and kept["found"]["flops_per_s"]:
            return dict(kept["found"])
    return None


def read(out: str, device: str) -> Found | None:
    """The peaks that the lines of a trial hold, wherever it ended."""
    flops: dict[str, float] = {}
    moved: list[tuple[int, float]] = []
    rest: dict[str, float] = {}
    name, whole = None, False
    for line in out.splitlines():
        with suppress(ValueError, KeyError, TypeError):
            said = json.loads(line)
            whole = whole or bool(said.get("whole"))
            name = said.get("device", name)
            dtype = said.get("matmul") or said.get("convolution")
            if dtype:
                flops[dtype] = max(flops.get(dtype, 0.0), float(said["flops_per_s"]))
            if "copy" in said:
                moved.append((int(said["copy"]), float(said["bytes_per_s"])))
            for way in ("host_to_device", "device_to_host"):
                if way in said:
                    rest[way] = float(said[way])
    if name is None or not flops or not moved:
        return None
    moved.sort()
    today = datetime.now(UTC).strftime("%Y-%m-%d")
    clock = clock_mhz(device)
    at = "" if clock is None else f" at {clock:.0f} MHz"
    return {
        "device": cpu_model() if device == "cpu" else name,
        "flops_per_s": flops,
        "bytes_per_s": moved[-1][1],
        "cached": [list(each) for each in moved[:-1]],
        "host_to_device": rest.get("host_to_device"),
        "device_to_host": rest.get("device_to_host"),
        "source": f"measured on this machine on {today}{at}",
        "measured": True,
        "measured_on": today,
        "clock_mhz": clock,
        "whole": whole,
    }


def clock_mhz(device: str, cpuinfo: Path = CPUINFO) -> float | None:
    """The clock of a device as it is now; of a CPU the fastest of its cores."""
    if device == "cpu":
        with suppress(OSError):
            text = cpuinfo.read_text(errors="replace")
            return max(map(float, re.findall(r"cpu MHz\s*:\s*([\d.]+)", text)), default=None)
        return None
    kind, _, index = device.partition(":")
    found = nvidia_devices() if kind == "cuda" else None
    number = int(index or 0)
    return found[number].clock_mhz if found and number < len(found) else None


def _place(device: str) -> Path:
    return cache_folder() / f"peaks-{key_of(device)}.json"


def _keep(device: str, found: Found) -> None:
    if not found["whole"]:
        return
    with suppress(OSError, RuntimeError):
        place = _place(device)
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=place.parent, prefix="peaks.", suffix=".tmp", delete=False, encoding="utf-8"
        ) as file:
            json.dump({"schema": SCHEMA, "found": found}, file)
        try:
            Path(file.name).replace(place)
        except OSError:
            Path(file.name).unlink(missing_ok=True)
