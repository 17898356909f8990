"""The top numbers of a summary document in words, few enough to read at a glance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.units import NOT_MEASURED, bytes_text, count_text, share_text, time_text

MOST_RANKS = 6
MOST_DEVICES = 2
MOST_FINDINGS = 6
MOST_CAUSES = 3
Rows = list[tuple[str, str]]


def summary_rows(document: Mapping[str, Any], not_measured: Mapping[str, str]) -> Rows:
    """Names and values: at most 25 lines, whatever the Run holds."""
    ranks = document["ranks"]
    rows = _rank(ranks[0], "") if len(ranks) == 1 else _ranks(ranks)
    ratio = document["overhead_ratio"]
    if ratio is not None:
        rows.append(("profiler", f"steps take {ratio:.2f} times as long under it"))
    rows += _findings(document["findings"])
    if not_measured:
        names = ", ".join(not_measured)
        rows.append((NOT_MEASURED, f"{names} (why: .not_measured)"))
    rows.append(("everything", ".to_json(), times in microseconds"))
    return rows


def _ranks(ranks: Sequence[Mapping[str, Any]]) -> Rows:
    rows = []
    for rank in ranks[:MOST_RANKS]:
        parts = [_steps(rank["steps"])]
        parts += [text for _, text in _devices(rank["devices"][:1], causes=0)]
        if rank["input"] is not None:
            parts.append(f"input {_input(rank['input'])}")
        number = "?" if rank["rank"] is None else rank["rank"]
        rows.append((f"rank {number}", " · ".join(parts)))
    return rows + _left(len(ranks) - MOST_RANKS, "rank")


def _rank(rank: Mapping[str, Any], name: str) -> Rows:
    memory = rank["memory"]
    alone = _memory_alone(rank)
    rows = [] if alone else [(f"{name}steps", _steps(rank["steps"]))]
    if rank["samples_per_s"] is not None:
        rows.append(("samples", f"{count_text(rank['samples_per_s'])} a second"))
    rows += _devices(rank["devices"][:MOST_DEVICES], causes=MOST_CAUSES)
    rows += _left(len(rank["devices"]) - MOST_DEVICES, "device")
    if not rank["devices"] and (host := _largest(rank["host_breakdown_us"], MOST_CAUSES)):
        rows.append(("loop", host))
    if not alone:
        rows.append(("input", NOT_MEASURED if rank["input"] is None else _input(rank["input"])))
    for table in ("kernels", "operators"):
        if rank[table]:
            rows.append((table, _first(rank[table])))
    if memory is not None and memory["peak_bytes"] is not None:
        rows.append(("memory", f"at most {bytes_text(memory['peak_bytes'])} allocated"))
    if not rank["trust"]["ok"]:
        codes = ", ".join(each["code"] for each in rank["trust"]["violations"])
        rows.append(("trust", f"the profile fails its own checks: {codes}"))
    return rows


def _memory_alone(rank: Mapping[str, Any]) -> bool:
    """Whether memory is all that there is, as in a memory snapshot."""
    others = ("steps", "devices", "host_breakdown_us", "operators", "input")
    return rank["memory"] is not None and not any(rank[name] for name in others)


def _steps(steps: Mapping[str, Any] | None) -> str:
    if steps is None:
        return NOT_MEASURED
    return f"{count_text(steps['count'])} recorded, median {_time(steps['time_us']['median'])}"


def _devices(devices: Sequence[Mapping[str, Any]], *, causes: int) -> Rows:
    rows = []
    for device in devices:
        held = device["window"] or device["recording"]
        name = f"{(device['type'] or 'device').upper()} {device['index']}"
        if held is None or not held["time"]["span_us"]:
            rows.append((name, NOT_MEASURED))
            continue
        time = held["time"]
        busy, idle = (share_text(time[key] / time["span_us"]) for key in ("busy_us", "idle_us"))
        text = f"busy {busy}, idle {idle} of {_time(time['span_us'])}"
        why = _largest(held["idle"]["by_cause"], causes)
        rows.append((name, f"{text}; idle for {why}" if why else text))
    return rows


def _largest(parts: Mapping[str, float | None] | None, most: int) -> str:
    known = {name: us for name, us in (parts or {}).items() if us}
    best = sorted(known.items(), key=lambda each: -each[1])[:most]
    return ", ".join(f"{name.replace('_', ' ')} {_time(us)}" for name, us in best)


def _input(found: Mapping[str, Any]) -> str:
    text = f"waits {_time(found['wait_us'])} for {count_text(found['batches'])} batches"
    exposed = found["exposed_us"]
    return text if exposed is None else f"{text}, {_time(exposed)} of it exposed"


def _first(table: Sequence[Mapping[str, Any]]) -> str:
    """How many there are, and the first, which is the largest."""
    first = table[0]
    us = first.get("total_us", first.get("host_self_us"))
    return f"{count_text(len(table))}; most time in {first['name']}, {_time(us)}"


def _findings(findings: Sequence[Mapping[str, Any]]) -> Rows:
    if not findings:
        return [("findings", "none")]
    rows = [(each["code"], each["title"]) for each in findings[:MOST_FINDINGS]]
    return rows + _left(len(findings) - MOST_FINDINGS, "finding")


def _left(count: int, what: str) -> Rows:
    return [("", f"and {count_text(count)} more {what}{'s' if count > 1 else ''}")] * (count > 0)


def _time(us: float | None) -> str:
    return time_text(None if us is None else us * 1000)
