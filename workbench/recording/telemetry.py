"""What is always known of a training that runs: the last steps, and what the machine did."""

import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

STEPS_KEPT = 10_000
SAMPLES_KEPT = 7_200
"""Samples of the system: an hour at two a second."""

_TYPES: dict[str, Any] = {
    "step": np.int64,
    "at_ns": np.int64,
    "step_ns": np.float64,
    "input_ns": np.float64,
    "forward_ns": np.float64,
    "backward_ns": np.float64,
    "optimizer_ns": np.float64,
    "other_ns": np.float64,
    "loss": np.float64,
    "samples": np.float64,
    "epoch": np.int64,
    "change": np.int64,
    "profiled": np.bool_,
}
COLUMNS = tuple(_TYPES)
Column = NDArray[Any]


class Telemetry:
    """A ring of the last 10,000 steps, and samples of the system beside them.

    One thread writes the steps; any thread may read.
    """

    def __init__(self, kept: int = STEPS_KEPT) -> None:
        self._kept = kept
        self._ring = tuple(np.zeros(kept, _TYPES[name]) for name in COLUMNS)
        self._count = 0
        self._samples: deque[dict[str, Any]] = deque(maxlen=SAMPLES_KEPT)
        self._lock = threading.Lock()

    @property
    def steps(self) -> int:
        """Steps that were measured so far, also those that are no longer kept."""
        return self._count

    def add(self, row: tuple[Any, ...]) -> None:
        """A step, its values in the order of the columns; ``NaN`` is what was not measured."""
        place = self._count % self._kept
        for column, value in zip(self._ring, row, strict=True):
            column[place] = value
        self._count += 1  # only now may readers look at it

    def columns(self, since_step: int = 0) -> dict[str, Column]:
        """The kept steps from ``since_step`` on, oldest first; the arrays are copies.

        ``step_ns`` is from the end of the step before to the end of this one; ``input_ns`` the
        wait for the batch in it. On a device the phases and the step are timed on the device, and
        ``other_ns`` is what is left of the step, the wait taken off as far as it goes. Times are
        nanoseconds; ``NaN`` was not measured. ``change`` is the number of the change of settings in
        force, ``profiled`` marks steps under the profiler.
        """
        while True:
            count = self._count
            first = max(0, count - self._kept)
            rows = np.arange(first, count) % self._kept
            found = {name: c[rows] for name, c in zip(COLUMNS, self._ring, strict=True)}
            # What was overwritten meanwhile is dropped.
            gone = max(0, self._count - self._kept) - first
            if gone <= len(rows):
                break
        kept = np.flatnonzero(found["step"][gone:] >= since_step)
        start = gone + (int(kept[0]) if len(kept) else len(rows) - gone)
        return {name: column[start:] for name, column in found.items()}

    def last(self, count: int) -> dict[str, Column]:
        """The last ``count`` steps, or fewer."""
        rows = np.arange(max(0, self._count - min(count, self._kept)), self._count) % self._kept
        return {name: c[rows] for name, c in zip(COLUMNS, self._ring, strict=True)}

    def sampled(self, row: Mapping[str, Any]) -> None:
        """A sample of the system: ``at_ns``, and what is known by the names of columns."""
        with self._lock:
            self._samples.append(dict(row))

    def system(self, since_ns: int = 0) -> dict[str, Column]:
        """The samples after ``since_ns`` (of ``time.monotonic_ns``), oldest first.

        A column that was never measured is absent; ``NaN`` was not measured just then.
        ``cpu_percent`` has a row a sample and a column a processor.
        """
        with self._lock:
            rows = [row for row in self._samples if row["at_ns"] > since_ns]
        found: dict[str, Column] = {"at_ns": np.array([row["at_ns"] for row in rows], np.int64)}
        for name in dict.fromkeys(name for row in rows for name in row if name != "at_ns"):
            width = max(np.size(row.get(name, 0)) for row in rows)
            wide = any(isinstance(row.get(name), tuple) for row in rows)
            column = np.full((len(rows), width) if wide else len(rows), np.nan)
            for place, row in enumerate(rows):
                value = row.get(name)
                if value is not None and np.size(value) == width:
                    column[place] = value
            found[name] = column
        return found
