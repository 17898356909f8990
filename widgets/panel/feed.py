"""Telemetry as the page gets it: new rows only, few enough, as binary columns."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Columns = Mapping[str, NDArray[Any]]
Packed = tuple[dict[str, Any], list[bytes]]

WIDE = ("step", "at_s")
NARROW = (
    *("step_ns", "input_ns", "forward_ns", "backward_ns", "optimizer_ns", "other_ns"),
    *("loss", "samples", "change", "pooled"),
)
SYSTEM_WIDE = ("at_s",)
MOST = 400
"""Rows of one message: with two doubles and ten floats each, 22 kB, four times a second."""
FIRST = 600
"""Of a page that has just come: as many newest steps as they are, and as many points before."""


class TelemetryLike(Protocol):
    """Where the numbers come from (``session.telemetry``)."""

    def columns(self, since_step: int = ...) -> Columns:
        """Steps after one, a column a part."""

    def system(self, since_ns: int = ...) -> Columns:
        """Samples of the machine after a moment."""


class Feed:
    """Remembers what was sent, and hands over what is new."""

    def __init__(self, telemetry: TelemetryLike) -> None:
        self._telemetry = telemetry
        self._origin_ns: float | None = None
        self._step = -1
        self._moment_ns = -1.0
        self._reset = True

    def rewind(self) -> None:
        """Start over: a page came that has nothing yet."""
        self._step, self._moment_ns = -1, -1.0
        self._reset = True

    def seconds(self, at_ns: float) -> float | None:
        """A moment on the page's clock; ``None`` before anything was measured."""
        return None if self._origin_ns is None else (at_ns - self._origin_ns) / 1e9

    def take(self) -> tuple[dict[str, Any], list[bytes]]:
        """The new rows of both tables: what the message says of them, and their buffers."""
        reset, self._reset = self._reset, False
        said: dict[str, Any] = {}
        buffers: list[bytes] = []
        for name, found in (("steps", self._steps(reset)), ("system", self._system(reset))):
            if found is not None:
                said[name] = found[0]
                buffers += found[1]
        return said, buffers

    def _steps(self, reset: bool) -> Packed | None:
        rows = after(self._telemetry.columns(max(0, self._step)), "step", self._step)
        rows = unprofiled(rows)
        count = len(rows["step"]) if "step" in rows else 0
        if count == 0:
            return _empty(WIDE, NARROW) if reset else None
        self._step = int(rows["step"][-1])
        timed = self._timed(rows) | {"pooled": np.isfinite(rows["step_ns"]).astype(float)}
        if reset and count > FIRST:
            old, new = (_part(timed, end) for end in (slice(0, -FIRST), slice(-FIRST, None)))
            shrunk = pooled(old, FIRST)
            names = (*WIDE, *NARROW)
            timed = {n: np.concatenate([_col(shrunk, n), _col(new, n)]) for n in names}
        elif count > MOST:
            timed = pooled(timed, MOST)
        return packed(timed, WIDE, NARROW, reset=reset)

    def _system(self, reset: bool) -> Packed | None:
        rows = after(self._telemetry.system(max(0, int(self._moment_ns))), "at_ns", self._moment_ns)
        count = len(rows["at_ns"]) if "at_ns" in rows else 0
        if count == 0:
            return _empty(SYSTEM_WIDE, SYSTEM) if reset else None
        self._moment_ns = float(rows["at_ns"][-1])
        shown = pooled(self._timed(system_columns(rows)), MOST)
        return packed(shown, SYSTEM_WIDE, SYSTEM, reset=reset)

    def _timed(self, rows: Columns) -> dict[str, NDArray[Any]]:
        at = np.asarray(rows["at_ns"], dtype=np.float64)
        if self._origin_ns is None:
            self._origin_ns = float(at[0])
        return {**rows, "at_s": (at - self._origin_ns) / 1e9}


SYSTEM = (
    *("device_share", "device_bytes", "device_power_w", "device_clock_hz", "cpu_share"),
    *("cpu_busiest", "rss_bytes", "disk_read_bytes_s", "disk_write_bytes_s"),
    *("network_in_bytes_s", "queue_depth"),
)
"""What the page draws of the machine."""
_AS_IT_IS = {
    "device_bytes": "device_memory_bytes",
    "device_power_w": "device_power_w",
    "rss_bytes": "rss_bytes",
    "disk_read_bytes_s": "disk_read_bytes_s",
    "disk_write_bytes_s": "disk_write_bytes_s",
    "network_in_bytes_s": "network_received_bytes_s",
    "queue_depth": "queue_depth",
}


def system_columns(rows: Columns) -> dict[str, NDArray[Any]]:
    """The samples under the page's names; processors as their mean and the busiest."""
    found: dict[str, NDArray[Any]] = {"at_ns": np.asarray(rows["at_ns"], dtype=np.float64)}
    for name, own in _AS_IT_IS.items():
        if own in rows:
            found[name] = np.asarray(rows[own], dtype=np.float64)
    if "device_percent" in rows:
        found["device_share"] = np.asarray(rows["device_percent"], dtype=np.float64) / 100
    if "device_clock_mhz" in rows:
        found["device_clock_hz"] = np.asarray(rows["device_clock_mhz"], dtype=np.float64) * 1e6
    if "cpu_percent" in rows and np.size(rows["cpu_percent"]):
        cores = np.atleast_2d(rows["cpu_percent"]) / 100
        found["cpu_share"], found["cpu_busiest"] = cores.mean(axis=1), cores.max(axis=1)
    return found


def unprofiled(rows: Columns) -> Columns:
    """Steps under the profiler take longer than they are: their times count as not measured."""
    if "profiled" not in rows or not np.any(rows["profiled"]):
        return rows
    under = np.asarray(rows["profiled"], dtype=bool)
    return {
        name: np.where(under, np.nan, column)
        if name.endswith("_ns") and name != "at_ns"
        else column
        for name, column in rows.items()
    }


def in_force(rows: Columns) -> Columns:
    """The steps under the settings of the last one: those since the last change of a switch."""
    if "change" not in rows or not len(rows["change"]):
        return rows
    other = np.flatnonzero(rows["change"] != rows["change"][-1])
    start = int(other[-1]) + 1 if len(other) else 0
    return {name: column[start:] for name, column in rows.items()}


def after(rows: Columns, name: str, last: float) -> Columns:
    """The rows whose ``name`` is above ``last``."""
    if name not in rows:
        return {}
    start = int(np.searchsorted(rows[name], last, side="right"))
    return {key: column[start:] for key, column in rows.items()}


def pooled(rows: Columns, most: int) -> dict[str, NDArray[Any]]:
    """At most ``most`` rows: neighbours become their mean, the moment and the step the last.

    Means keep sums true, so that parts of a step still add up to it. What was not measured is left
    out of a mean; ``pooled`` counts the measured steps of a row, and ``change`` is not known where
    they ran under several settings.
    """
    count = len(next(iter(rows.values())))
    group = -(-count // most)
    if group <= 1:
        return dict(rows)
    starts = np.arange(0, count, group)
    lasts = np.minimum(starts + group, count) - 1
    made: dict[str, NDArray[Any]] = {}
    for name, column in rows.items():
        if name in ("step", "at_s", "at_ns"):
            made[name] = column[lasts]
            continue
        if name == "change":
            one = np.minimum.reduceat(column, starts) == np.maximum.reduceat(column, starts)
            made[name] = np.where(one, column[lasts], np.nan)
            continue
        there = np.isfinite(column)
        sums = np.add.reduceat(np.where(there, column, 0.0), starts)
        counts = np.add.reduceat(there.astype(np.int64), starts)
        if name == "pooled":
            made[name] = sums
            continue
        made[name] = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return made


def packed(rows: Columns, wide: tuple[str, ...], narrow: tuple[str, ...], *, reset: bool) -> Packed:
    """Rows as two buffers: ``wide`` columns as doubles, ``narrow`` ones as floats."""
    count = len(rows[wide[0]])
    doubles = np.concatenate([_col(rows, name) for name in wide]).astype("<f8")
    there = [name for name in narrow if name in rows]
    floats = [np.asarray(rows[name], dtype="<f4") for name in there]
    joined = np.concatenate(floats) if floats else np.empty(0, dtype="<f4")
    said = {"count": count, "wide": list(wide), "columns": there, "reset": reset}
    return said, [doubles.tobytes(), joined.tobytes()]


def _empty(wide: tuple[str, ...], narrow: tuple[str, ...]) -> Packed:
    return {"count": 0, "wide": list(wide), "columns": list(narrow), "reset": True}, [b"", b""]


def _part(rows: Columns, which: slice) -> dict[str, NDArray[Any]]:
    return {name: column[which] for name, column in rows.items()}


def _col(rows: Columns, name: str) -> NDArray[Any]:
    found = rows.get(name)
    if found is not None:
        return found
    return np.full(len(rows["at_s"]), np.nan)
