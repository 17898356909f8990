"""Starts the trial of a device in a process of its own, and keeps its answers for the machine.

A device context, an operator that never returns and a crash all stay in the child. What it found is
kept in the user's cache per device, processors and versions; a cache that cannot be read is made
anew, one that cannot be written does not matter.
"""

import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from workbench.machine.cpu_flags import cpu_flags, cpu_model
from workbench.machine.cpus import usable_cpus
from workbench.machine.installed import package_version
from workbench.machine.nvidia import driver_version, nvidia_devices
from workbench.machine.trial import ORDER, PATIENCE

SCHEMA = "workbench.probe/2"
VARIABLE = "WORKBENCH_CACHE"
TRIAL = Path(__file__).with_name("trial.py")
START_LIMIT_S = 90.0
"""For importing torch and opening a device; on a network drive that takes a minute."""
LEAVING_S = 5.0
"""How long a killed child is waited for: a driver may hold it."""

RATIOS = ("matmul_ratio", "convolution_ratio")

Found = dict[str, Any]
"""``device``, ``dtypes``, ``attention`` and ``modes`` by name, ``whole``, ``reason``."""


def trial_of(device: str, time_limit_s: float) -> Found:
    """What the trial of ``device`` found: from this process's memory, the cache, or a new child."""
    key = key_of(device)
    with _LOCK:
        found = _remembered(key)
        if found is None:
            found = run_trial(device, time_limit_s)
            _keep(key, found)
    return found


def known_trial(device: str) -> Found | None:
    """The same if it is known already; starts nothing."""
    return _remembered(key_of(device))


_LOCK = threading.Lock()
_MEMORY: dict[str, Found] = {}


def _remembered(key: str) -> Found | None:
    if key not in _MEMORY:
        with suppress(OSError, RuntimeError, ValueError, KeyError, TypeError):
            kept = json.loads((cache_folder() / f"{key}.json").read_text(encoding="utf-8"))
            if kept["schema"] == SCHEMA and _sound(kept["found"]):
                _MEMORY[key] = kept["found"]
    return _MEMORY.get(key)


def _sound(found: Found) -> bool:
    dtypes = found["dtypes"]
    ratios = [one.get(name) for one in dtypes.values() for name in RATIOS]
    numbers = all(ratio is None or (isinstance(ratio, float) and ratio > 0) for ratio in ratios)
    told = all(isinstance(dtypes[name]["supported"], bool) for name in ORDER)
    return bool(found["whole"]) and numbers and told and isinstance(found["attention"], dict)


def _keep(key: str, found: Found) -> None:
    """In memory always; on disk if it is whole and the disk allows it, at once or not at all."""
    _MEMORY[key] = found
    if not found["whole"]:
        return  # on a less busy day it may be
    with suppress(OSError, RuntimeError):
        folder = cache_folder()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            "w", dir=folder, prefix=f"{key}.", suffix=".tmp", delete=False, encoding="utf-8"
        ) as file:
            json.dump({"schema": SCHEMA, "found": found}, file)
        try:
            Path(file.name).replace(folder / f"{key}.json")
        except OSError:
            Path(file.name).unlink(missing_ok=True)


def run_trial(device: str, time_limit_s: float, *, script: Path = TRIAL) -> Found:
    """Run the trial in a child and read its lines, however it ends."""
    threads = 1 if device == "cpu" else usable_cpus()
    out, error, ended = run_child(script, device, time_limit_s, threads)
    return _read(out, error, limit_s=time_limit_s if ended else None)


def run_child(
    script: Path, device: str, time_limit_s: float, threads: int
) -> tuple[str, str | None, bool]:
    """What a script printed, its last error line, and whether it could be started at all."""
    command = [sys.executable, "-P", "-W", "ignore", str(script)]
    command += [device, str(time_limit_s), str(threads), _torch_folder()]
    try:
        child = subprocess.Popen(  # noqa: S603 - our own script, with this very interpreter
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
    except OSError as error:
        return "", f"no process could be started ({error.strerror})", False
    try:
        out, errors = child.communicate(timeout=START_LIMIT_S + PATIENCE * time_limit_s)
    except subprocess.TimeoutExpired:
        out, errors = _killed(child)
    finally:
        if child.poll() is None:  # an interrupt came
            _killed(child)
        for pipe in (child.stdout, child.stderr):
            if pipe is not None:
                pipe.close()
    last = (errors or "").strip().splitlines()
    return out or "", last[-1][:300] if last else None, True


def _killed(child: "subprocess.Popen[str]") -> tuple[str, str]:
    child.kill()
    try:
        return child.communicate(timeout=LEAVING_S)
    except subprocess.TimeoutExpired:
        return "", "it did not answer, and could not be ended"


def _torch_folder() -> str:
    """Where this process finds torch, which a child of a notebook need not."""
    spec = find_spec("torch")
    return str(Path(spec.origin).parent.parent) if spec is not None and spec.origin else ""


def _read(out: str, error: str | None, limit_s: float | None = None) -> Found:
    """The lines of a trial that may have ended anywhere."""
    found: Found = {"device": None, "dtypes": {}, "attention": {}, "modes": {}, "reason": error}
    begun = None
    for line in out.splitlines():
        with suppress(ValueError):
            said = json.loads(line)
            if "device" in said:
                found["device"] = said["device"]
            elif "begins" in said:
                begun = said["begins"]
            elif "dtype" in said:
                found["dtypes"][said.pop("dtype")] = said
            elif "attention" in said:
                found["attention"][said["attention"]] = said["dtypes"]
            elif "mode" in said:
                found["modes"][said.pop("mode")] = said
    if begun is not None and begun not in found["dtypes"]:
        found["hung"] = begun
        found["reason"] = f"its smallest product did not end within {limit_s:g} s"
    found["whole"] = found["device"] is not None and all(d in found["dtypes"] for d in ORDER)
    return found


def key_of(device: str) -> str:
    """Everything that the answers depend on; asking opens no device."""
    parts = [SCHEMA, device, cpu_model(), sorted(cpu_flags() or ()), usable_cpus()]
    parts += [package_version(name) for name in ("torch", "torchao", "triton")]
    parts += [sys.version_info[:2], os.environ.get("CUDA_VISIBLE_DEVICES")]
    if device != "cpu":
        names = [found.name for found in nvidia_devices() or ()]
        # Where nobody names the devices, machines that share a home folder need names themselves.
        parts += [names or platform.node(), driver_version()]
    text = json.dumps(parts, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def cache_folder() -> Path:
    """Where answers are kept: ``WORKBENCH_CACHE``, or the user's cache folder."""
    import platformdirs

    chosen = os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).expanduser() / "machine"
    return Path(platformdirs.user_cache_dir("torch-workbench", appauthor=False)) / "machine"
