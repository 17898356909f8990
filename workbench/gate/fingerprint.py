"""Which machine a baseline was measured on: times of another one are not compared."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

SOFTWARE = ("python", "torch", "cuda", "hip", "cudnn", "nvidia_driver", "triton", "numpy")
"""Versions that are told where they differ: they may be the very change that is gated."""


def machine_of(environment: Mapping[str, Any]) -> dict[str, Any] | None:
    """What makes a machine the same one; ``None`` where nothing was recorded.

    Names of people, hosts and places are not part of it.
    """
    if not environment:
        return None
    devices = [
        {"type": d.get("type"), "name": d.get("name"), "memory_bytes": d.get("memory_bytes")}
        for d in environment.get("devices") or ()
        if isinstance(d, Mapping) and d.get("type") != "cpu"
    ]
    return {
        "system": environment.get("system"),
        "processor": environment.get("processor"),
        "usable_cpus": environment.get("usable_cpus"),
        "devices": devices,
    }


def fingerprint(environment: Mapping[str, Any]) -> str | None:
    """Twelve hexadecimal digits for :func:`machine_of`."""
    found = machine_of(environment)
    if found is None:
        return None
    text = json.dumps(found, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def machine_differences(base: Mapping[str, Any], head: Mapping[str, Any]) -> tuple[str, ...]:
    """In what two machines differ, in words; empty for the same one, or where one is not known."""
    a, b = machine_of(base), machine_of(head)
    if a is None or b is None:
        return ()
    return tuple(
        f"{name.replace('_', ' ')}: {_text(a[name])} → {_text(b[name])}"
        for name in a
        if a[name] != b[name] and a[name] is not None and b[name] is not None
    )


def software_differences(base: Mapping[str, Any], head: Mapping[str, Any]) -> tuple[str, ...]:
    """Versions in which two sides differ, in words."""
    if not base or not head:
        return ()
    return tuple(
        f"{name}: {base.get(name) or 'none'} → {head.get(name) or 'none'}"
        for name in SOFTWARE
        if base.get(name) != head.get(name)
    )


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(each.get("name") or each.get("type")) for each in value) or "none"
    return str(value)
