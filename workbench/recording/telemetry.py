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

    One thread writes the steps; any thread may read. Writing is one append, because what comes
    between two steps finds no cache warm: readers put the rows into columns.
    """

    def __init__(self, kept: int = STEPS_KEPT) -> None:
        self._kept = kept
        self._new: deque[tuple[Any, ...]] = deque(maxlen=kept)
        """Rows that are in no column yet."""
        self._ring = tuple(np.zeros(kept, _TYPES[name]) for name in COLUMNS)
        self._filed = 0
        """Rows that were put into the ring so far."""
        self._count = 0
        self._samples: deque[dict[str, Any]] = deque(maxlen=SAMPLES_KEPT)
        self._lock = threading.Lock()

    @property
    def steps(self) -> int:
        """Steps that were measured so far, also those that are no longer kept."""
        return self._count

    def add(self, row: tuple[Any, ...]) -> None:
        """A step, its values in the order of the columns; ``NaN`` is what was not measured."""
        self._new.append(row)
        self._count += 1

    def columns(self, since_step: int = 0) -> dict[str, Column]:
        """The kept steps from ``since_step`` on, oldest first; the arrays are copies.

        ``step_ns`` is from the end of the step before to the end of this one; ``input_ns`` the
        wait for the batch in it. On a device the phases and the step are timed on the device, and
        ``other_ns`` is what is left of the step, the wait taken off as far as it goes. Times are
        nanoseconds; ``NaN`` was not measured. ``change`` is the number of the change of settings in
        force, ``profiled`` marks steps under the profiler.
        """
        with self._lock:
            self._file()
            rows = self._places(self._kept)
            number = self._ring[0][rows]  # rises from step to step
            return self._of(rows[int(np.searchsorted(number, since_step)) :])

    def last(self, count: int) -> dict[str, Column]:
        """The last ``count`` steps, or fewer."""
        with self._lock:
            self._file()
            return self._of(self._places(min(count, self._kept)))

    def _file(self) -> None:
        """Put the new rows into the ring."""
        rows = [self._new.popleft() for _ in range(len(self._new))]
        if not rows:
            return
        places = np.arange(self._filed, self._filed + len(rows)) % self._kept
        for column, values in zip(self._ring, zip(*rows, strict=True), strict=True):
            column[places] = values
        self._filed += len(rows)

    def _places(self, count: int) -> Column:
        return np.arange(max(0, self._filed - count), self._filed) % self._kept

    def _of(self, rows: Column) -> dict[str, Column]:
        return {name: column[rows] for name, column in zip(COLUMNS, self._ring, strict=True)}

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
