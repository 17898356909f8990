"""A close look at single samples of a batch, as many as the budget allows.

The fetcher gets a stand-in for its data set while it fetches such a batch, and its own back.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from operator import getitem
from typing import Any, Self

from workbench.recording.loader.budget import Budget
from workbench.recording.loader.counters import Counters
from workbench.recording.loader.layout import MISSING
from workbench.recording.loader.reads import Reads

FIRST_GUESS_NS = 20_000
"""What looking at a sample costs, until the first one has told."""
TRIES = 3
"""Batches that are looked at whatever it costs until a look succeeds: the first sample of a process
often imports modules, whose calls are too many to listen to."""
PASS_NS = 300
"""What handing a sample through without looking costs."""


class CloseLook:
    """Looks at samples; ``rows`` are the records of the current batch."""

    def __init__(self, counters: Counters, budget: Budget, call_ns: int) -> None:
        self.rows: list[tuple[int, ...]] = []
        self.probe_ns = 0
        """Time that looking itself took, all in all."""
        self._counters = counters
        self._budget = budget
        self._reads = Reads(counters.delay)
        self._call_ns = call_ns
        self._cost_ns = FIRST_GUESS_NS
        self._batches = 0
        self._succeeded = False
        self._undo: Callable[[], None] | None = None
        self._position = self._chosen = self._began_ns = 0

    @property
    def least_ns(self) -> int:
        """The least that looking at a batch may cost; 0 while it is tried whatever it costs."""
        if self._batches < (1 if self._succeeded else TRIES):
            return 0
        return self._cost_ns

    def fits(self, samples: int, left_ns: int) -> bool:
        """Whether a batch of so many samples may be looked at; the first one always is.

        Args:
            samples: How many the batch has.
            left_ns: What may be spent.
        """
        if self._cost_ns + samples * PASS_NS <= left_ns:
            return True
        return self._batches < (1 if self._succeeded else TRIES)

    def open(self, fetcher: Any, samples: int, began_ns: int) -> None:
        """Give the fetcher a stand-in for this batch, until :meth:`close`."""
        self._chosen = self._batches % max(samples, 1)
        self._batches += 1
        self._position, self._began_ns = 0, began_ns
        self.probe_ns += samples * PASS_NS
        self._budget.spent_ns += samples * PASS_NS
        name = "dataset_iter" if hasattr(fetcher, "dataset_iter") else "dataset"
        real = getattr(fetcher, name)
        stand_in = _stand_in(fetcher, real, name, self)

        def undo() -> None:
            if getattr(fetcher, name) is stand_in:
                setattr(fetcher, name, real)

        self._undo = undo
        setattr(fetcher, name, stand_in)

    def close(self) -> None:
        """Give the fetcher its own back; listen no more, also where an interrupt came between."""
        self._reads.abandon()
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()

    def look(self, call: Callable[[Any], Any], argument: Any, samples: int = 1) -> Any:
        """The call's own result; how it spent its time becomes a row, where that is affordable."""
        entered = time.monotonic_ns()
        position, self._position = self._position, self._position + 1
        if position != self._chosen and not self._budget.allows(
            self._cost_ns, entered - self._began_ns
        ):
            return call(argument)
        before = self._counters.read()
        left = self._budget.left(entered - self._began_ns)
        self._reads.begin(left // self._call_ns)
        cpu, began, ended = time.thread_time_ns(), time.monotonic_ns(), False
        try:
            return call(argument)
        except StopIteration:  # the end of a stream is no sample
            ended = True
            raise
        finally:
            dur, cpu = time.monotonic_ns() - began, time.thread_time_ns() - cpu
            read_ns, read_cpu_ns = self._reads.end()
            counted = self._counters.read().since(before)
            row = (
                *(position, samples, began, dur, cpu, counted.run_delay_ns, read_ns, read_cpu_ns),
                *(counted.read_bytes, counted.storage_bytes, counted.major_faults),
                *(self._reads.file_system, self._reads.calls, self._reads.delay_ns),
            )
            self.rows += () if ended else (row,)
            own = time.monotonic_ns() - entered - dur + self._reads.calls * self._call_ns
            self._cost_ns = self._budget.spend(own, self._cost_ns)
            if read_ns == MISSING:
                self._cost_ns += own  # the whole sample would have taken more
            else:
                self._succeeded = True
            self.probe_ns += own


class _Samples:
    """A map-style data set, read sample by sample."""

    def __init__(self, dataset: Any, look: CloseLook) -> None:
        self._dataset = dataset
        self._look = look
        # As the fetcher does it: the data set's own ways with attributes are not asked.
        self._get = partial(getitem, dataset)

    def __getitem__(self, index: Any) -> Any:
        return self._look.look(self._get, index)

    def __len__(self) -> int:
        return len(self._dataset)


class _Batches(_Samples):
    """A map-style data set that gives all samples of a batch in one call."""

    def __getitems__(self, indices: Any) -> Any:
        return self._look.look(self._dataset.__getitems__, indices, len(indices))


class _Stream(Iterator[Any]):
    """The iterator of an iterable data set."""

    def __init__(self, real: Iterator[Any], look: CloseLook) -> None:
        self._real = real
        self._look = look

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        return self._look.look(next, self._real)


def _stand_in(fetcher: Any, real: Any, name: str, look: CloseLook) -> Any:
    if name == "dataset_iter":
        return _Stream(real, look)
    whole = fetcher.auto_collation and getattr(real, "__getitems__", None)
    return _Batches(real, look) if whole else _Samples(real, look)
