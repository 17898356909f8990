"""How a fetcher of torch spends its time on a batch: samples, reads, collate.

The fetcher's own code runs; only what it calls is timed. The data set that user code can see, such
as ``get_worker_info().dataset``, is never replaced.
"""

import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from workbench.recording.loader.budget import BATCH_NS, DETAIL_LEAST, DETAIL_SHARE, Budget
from workbench.recording.loader.counters import NOTHING, Counters, Detail
from workbench.recording.loader.layout import MISSING, Kind, pack, packer
from workbench.recording.loader.samples import CloseLook
from workbench.recording.loader.sizes import bytes_in

DETAIL_NS = 20_000
"""What reading the kernel's counters around a batch costs, until the first time has told."""

_NOT_COLLATED = (MISSING,) * 5
"""Start, length, CPU time, time without a processor, bytes."""
_UNCOUNTED = (MISSING, *NOTHING)
_now, _cpu = time.monotonic_ns, time.thread_time_ns
_pack = packer(Kind.FETCH)


class FetchProbe:
    """Times the batches of fetchers on one thread; hands on the records of a batch together.

    Args:
        write: Takes the records of a batch.
        call_ns: What listening to one call of a C function costs.
        counters: Those of the thread, where several share them; its own when left out.
    """

    def __init__(
        self, write: Callable[[bytes], None], call_ns: int, counters: Counters | None = None
    ) -> None:
        self.epoch = 0
        self.wait = (MISSING, MISSING)
        """Start and length of the wait for the index of the batch that comes next."""
        self.fetched_ns = 0
        """When the last batch was fetched, on CLOCK_MONOTONIC."""
        self._write = write
        self._counters = counters or Counters()
        self._shares = counters is not None
        self._open: Any = None
        """The fetcher that is being changed now."""
        self._budget = Budget(each_ns=BATCH_NS)
        self._details = Budget(DETAIL_SHARE, DETAIL_LEAST, BATCH_NS)
        self._look = CloseLook(self._counters, self._budget, call_ns)
        self._detail_ns, self._batches, self._due_ns = DETAIL_NS, 0, 0
        self._probe_ns = self._told_ns = 0
        self._timed = self._timed_collate
        self._collate: Callable[[Any], Any] | None = None
        self._collated = _NOT_COLLATED
        self._cpu_ns: int | None = None
        self._counted: Detail | None = None
        """The counters at the end of collate, which is the end of the fetch."""
        self._extra_ns = 0
        """CPU time that reading the counters of this batch took."""
        self._samples = MISSING
        self._detailed = False
        self._pending: tuple[int, ...] | None = None

    def attach(self, fetcher: Any, put: Callable[[Any, str, Any], None] = setattr) -> None:
        """Time every batch of this fetcher; ``put`` sets the attribute that does it.

        Raises:
            AttributeError: it is not made like torch's.
        """
        parts = getattr(fetcher, "__dict__", {})
        if not {"auto_collation", "collate_fn", "dataset"} <= parts.keys():
            raise AttributeError("a fetcher of another kind")
        real, known = type(fetcher).fetch, weakref.ref(fetcher)

        def fetch(index: Any) -> Any:
            return self._fetch(known(), real, index)

        put(fetcher, "fetch", fetch)

    def finish(self, batch: int, *, failed: bool = False) -> None:
        """The batch that was fetched last has this number."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        began, look = _now(), self._look
        if look.rows:
            rows = [pack(Kind.ITEM, self.epoch, batch, *item) for item in look.rows]
            look.rows.clear()
            self._write(b"".join(rows))
        probed = self._probe_ns + look.probe_ns
        told, self._told_ns = self._told_ns, probed
        wait, wait_ns = self.wait
        self._write(
            _pack(self.epoch, batch, pending[0], wait, wait_ns, *pending[1:], failed, probed - told)
        )
        self._probe_ns += _now() - began

    def close(self) -> None:
        """Close what is open, and undo what an interrupt has left."""
        self._put_back()
        if not self._shares:
            self._counters.close()

    def _put_back(self) -> None:
        fetcher, self._open = self._open, None
        collate, self._collate = self._collate, None
        if fetcher is not None and collate is not None:
            fetcher.collate_fn = collate
        self._look.close()

    def _fetch(self, fetcher: Any, real: Callable[..., Any], index: Any) -> Any:
        # What every batch pays for: a batch of one short sample is told in a few microseconds.
        entered = _now()
        if self._open is not None:
            self._put_back()
        self._pending = self._cpu_ns = None
        self._collated = _NOT_COLLATED
        sized = fetcher.auto_collation and hasattr(index, "__len__")
        self._samples = len(index) if sized else MISSING
        self._open, before = fetcher, None
        self._detailed = self._budget.measured_ns >= self._due_ns
        if self._detailed:
            before = self._begin(fetcher, len(index) if sized else 1, entered)
        self._collate = fetcher.collate_fn
        fetcher.collate_fn = self._timed
        cpu, began = _cpu(), _now()
        try:
            return real(fetcher, index)
        finally:
            self.fetched_ns = ended = _now()
            taken = ended - began
            cpu = (_cpu() if self._cpu_ns is None else self._cpu_ns) - cpu
            self._put_back()
            counted = _UNCOUNTED if before is None else self._since(*before)
            self._budget.measured_ns += taken
            self._details.measured_ns += taken
            self._budget.batches += 1
            self._details.batches += 1
            self._pending = (self._samples, began, taken, cpu, *counted, *self._collated)
            self._probe_ns += _now() - ended + began - entered

    def _begin(self, fetcher: Any, samples: int, entered: int) -> tuple[int, Detail] | None:
        """Look at samples of this batch and read the kernel's counters, as far as affordable."""
        left, cpu = self._budget.left(), _cpu()
        if self._look.fits(samples, left):
            self._look.rows.clear()
            self._look.open(fetcher, samples, entered)
        self._detailed = self._details.allows(self._detail_ns) or not self._batches
        self._batches += 1
        self._due_ns = self._next_due_ns()
        if not self._detailed:
            return None
        self._counted = None
        before = time.process_time_ns(), self._counters.read()
        self._extra_ns = _cpu() - cpu
        return before

    def _next_due_ns(self) -> int:
        look = self._budget.due_ns(self._look.least_ns)
        return min(look, self._details.due_ns(self._detail_ns))

    def _since(self, process: int, counted: Detail) -> tuple[int, ...]:
        """What the kernel counted for the batch."""
        cpu = _cpu()
        found = (
            time.process_time_ns() - process,
            *(self._counted or self._counters.read()).since(counted),
        )
        self._extra_ns += _cpu() - cpu
        self._detail_ns = self._details.spend(self._extra_ns, self._detail_ns)
        self._due_ns = self._next_due_ns()
        return found

    def _timed_collate(self, data: Any) -> Any:
        if self._collate is None:
            raise AssertionError("only called while a batch is fetched")
        if self._samples != MISSING and isinstance(data, list):
            self._samples = len(data)
        if self._detailed:
            return self._counted_collate(data, self._collate)
        cpu, began = _cpu(), _now()
        try:
            return self._collate(data)
        finally:
            ended, self._cpu_ns = _now(), _cpu()
            self._collated = (began, ended - began, self._cpu_ns - cpu, MISSING, MISSING)

    def _counted_collate(self, data: Any, collate: Callable[[Any], Any]) -> Any:
        """As above, with how long it waited for a processor, and how large the batch is."""
        waited, size = self._counters.delay(), None
        cpu, began = _cpu(), _now()
        try:
            batch = collate(data)
        finally:
            ended, self._cpu_ns = _now(), _cpu()
            self._counted = self._counters.read()
            now = self._counted.run_delay_ns
            waited = MISSING if MISSING in (waited, now) else now - waited
            self._collated = (began, ended - began, self._cpu_ns - cpu, waited, MISSING)
        with suppress(Exception):  # tensors of any kind, such as sparse ones
            size = bytes_in(batch)
        self._collated = (*self._collated[:4], MISSING if size is None else size)
        self._extra_ns += _cpu() - self._cpu_ns
        self._probe_ns += _now() - ended
        return batch
