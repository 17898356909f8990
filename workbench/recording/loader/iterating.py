"""The training process's side of a loader: indices, arrival, order, pinning, delivery."""

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from workbench.recording.loader.attributes import Attributes
from workbench.recording.loader.counters import ThreadDelay
from workbench.recording.loader.fetch import FetchProbe

_KEPT = 4096
"""Arrivals of batches that were never delivered are forgotten beyond this many."""


@dataclass(kw_only=True)
class Delivery:
    """What the training process did for one batch; times are CLOCK_MONOTONIC, ``None`` unseen."""

    stream: int
    epoch: int
    batch: int
    worker: int | None = None
    sampler_start_ns: int | None = None
    sampler_ns: int | None = None
    ready_ns: int | None = None
    """When its bytes were there to be read and somebody was there to read them."""
    receive_ns: int | None = None
    unpickle_ns: int | None = None
    unpickle_cpu_ns: int | None = None
    receive_run_delay_ns: int | None = None
    """Of the thread that received it, from when it began to wait for bytes."""
    received_ns: int | None = None
    received_bytes: int | None = None
    pin_start_ns: int | None = None
    pin_ns: int | None = None
    next_start_ns: int | None = None
    next_ns: int | None = None


@dataclass(kw_only=True)
class IteratorProbe:
    """Times one iterator of torch, from any number of epochs."""

    stream: int
    attributes: Attributes
    delay: ThreadDelay = field(default_factory=ThreadDelay)
    """Of threads that receive batches; shared by all iterators of a run."""
    epoch: int = 0
    resetting: bool = False
    """While a new epoch begins, batches of the last one may still arrive."""
    delivered: list[Delivery] = field(default_factory=list)
    _open: dict[tuple[int, int], Delivery] = field(default_factory=dict)
    _order: deque[tuple[int, int]] = field(default_factory=deque)
    _poll_ready: dict[int, int] = field(default_factory=dict)
    _bytes_read: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """By thread: when it had read bytes, on both clocks, and how many."""
    _last: int = -1
    _pins: bool = False
    """Whether a thread stands between arrival and delivery."""

    def attach(self, iterator: Any) -> None:
        """Put the probes on an iterator over worker processes."""
        known, kind, put = weakref.ref(iterator), type(iterator), self.attributes.set

        def next_index() -> Any:
            mine: Any = known()
            began, batch = time.monotonic_ns(), mine._send_idx
            index = kind._next_index(mine)
            found = self._of(batch)
            found.sampler_start_ns, found.sampler_ns = began, time.monotonic_ns() - began
            return index

        def next_data() -> Any:
            mine: Any = known()
            began = time.monotonic_ns()
            data = kind._next_data(mine)
            batch = mine._rcvd_idx - 1 if getattr(mine, "_in_order", True) else self._last
            self._deliver(batch, began)
            return data

        put(iterator, "_next_index", next_index)
        put(iterator, "_next_data", next_data)
        self.attach_queue(iterator._worker_result_queue)
        if getattr(iterator, "_pin_memory", False):
            self._attach_pinning(iterator._data_queue)

    def attach_queue(self, queue: Any) -> None:
        """Time what arrives through the queue of results; whichever thread reads it."""
        known, kind = weakref.ref(queue), type(queue)
        poll, receive = queue._poll, queue._recv_bytes

        def timed_poll(*args: Any, **kwargs: Any) -> Any:
            self.delay.begin()
            ready = poll(*args, **kwargs)
            self._poll_ready[threading.get_ident()] = time.monotonic_ns()
            return ready

        def timed_receive(*args: Any, **kwargs: Any) -> Any:
            data = receive(*args, **kwargs)
            now = time.monotonic_ns(), time.thread_time_ns()
            self._bytes_read[threading.get_ident()] = (*now, len(data))
            return data

        def timed_get(*args: Any, **kwargs: Any) -> Any:
            answer = kind.get(known(), *args, **kwargs)
            if isinstance(answer[0], int) and not self.resetting:
                self._arrived(answer[0], time.monotonic_ns())
            return answer

        self.attributes.set(queue, "_poll", timed_poll)
        self.attributes.set(queue, "_recv_bytes", timed_receive)
        self.attributes.set(queue, "get", timed_get)

    def _attach_pinning(self, queue: Any) -> None:
        known, kind, self._pins = weakref.ref(queue), type(queue), True

        def seen_get(*args: Any, **kwargs: Any) -> Any:
            answer = kind.get(known(), *args, **kwargs)
            if isinstance(answer[0], int):
                self._last = answer[0]
            return answer

        def timed_put(answer: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(answer[0], int):
                found = self._of(answer[0])
                if found.received_ns is not None:
                    found.pin_start_ns = found.received_ns
                    found.pin_ns = time.monotonic_ns() - found.received_ns
            return kind.put(known(), answer, *args, **kwargs)

        self.attributes.set(queue, "get", seen_get)
        self.attributes.set(queue, "put", timed_put)

    def attach_single(self, iterator: Any, fetch: FetchProbe) -> None:
        """Put the probes on an iterator that loads in this process."""
        known, kind, put = weakref.ref(iterator), type(iterator), self.attributes.set
        fetcher = iterator._dataset_fetcher
        fetch.attach(fetcher, put)

        def next_index() -> Any:
            began = time.monotonic_ns()
            index = kind._next_index(known())
            found = self._of(self._last + 1)
            found.sampler_start_ns, found.sampler_ns = began, time.monotonic_ns() - began
            return index

        def next_data() -> Any:
            mine: Any = known()
            began = time.monotonic_ns()
            data = kind._next_data(mine)
            self._last += 1
            fetch.finish(self._last)
            found = self._deliver(self._last, began)
            if getattr(mine, "_pin_memory", False) and found.next_ns is not None:
                found.pin_start_ns = fetch.fetched_ns
                found.pin_ns = began + found.next_ns - fetch.fetched_ns
            return data

        put(iterator, "_next_index", next_index)
        put(iterator, "_next_data", next_data)

    def _of(self, batch: int) -> Delivery:
        key = self.epoch, batch
        found = self._open.get(key)
        if found is None:
            found = self._open[key] = Delivery(stream=self.stream, epoch=self.epoch, batch=batch)
            self._order.append(key)
            if len(self._order) > _KEPT:
                self._open.pop(self._order.popleft(), None)
        return found

    def _arrived(self, batch: int, now: int) -> None:
        found, thread = self._of(batch), threading.get_ident()
        read, cpu, size = self._bytes_read.get(thread, (None, 0, None))
        ready = self._poll_ready.get(thread)
        if not self._pins:
            self._last = batch
        found.received_ns, found.received_bytes, found.ready_ns = now, size, ready
        if read is not None:
            found.unpickle_ns, found.unpickle_cpu_ns = now - read, time.thread_time_ns() - cpu
            found.receive_ns = None if ready is None else read - ready
        found.receive_run_delay_ns = self.delay.since()

    def _deliver(self, batch: int, began: int) -> Delivery:
        found = self._of(batch)
        found.next_start_ns, found.next_ns = began, time.monotonic_ns() - began
        self._open.pop((self.epoch, batch), None)
        self.delivered.append(found)
        return found


def kind_of(iterator: Any) -> Callable[..., Any] | None:
    """How an iterator of torch, or one made like it, is attached; ``None`` for any other."""
    parts = getattr(iterator, "__dict__", {})
    if {"_worker_result_queue", "_index_queues", "_send_idx", "_rcvd_idx"} <= parts.keys():
        return IteratorProbe.attach
    if {"_dataset_fetcher", "_sampler_iter"} <= parts.keys():
        return IteratorProbe.attach_single
    return None
