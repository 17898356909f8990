"""End an iterator: its worker processes, its threads, its generator frames."""

from multiprocessing.process import BaseProcess
from types import GeneratorType
from typing import Any

from torch.utils.data import dataloader

_FEEDER_S = 1.0
"""How long to wait for the thread that writes to a worker's queue; it ends by itself."""

_LEAVE_S = 2.0
"""How long a worker that was told to terminate may take; then it is killed."""

_Workers = dataloader._MultiProcessingDataLoaderIter


def shut_down(iterator: Any) -> None:
    """End what ``iterator`` keeps running; harmless when it has ended already.

    A worker that does not leave within five seconds is terminated, and killed when it ignores that.
    """
    if isinstance(iterator, GeneratorType):
        iterator.close()
        return
    # By name: loaders of other packages have iterators of their own with the same parts.
    stop = getattr(iterator, "_shutdown_workers", None)
    if stop is None:
        return
    queues = getattr(iterator, "_index_queues", ())
    for queue in queues:
        _let_go(queue)
    feeders = [thread for queue in queues if (thread := getattr(queue, "_thread", None))]
    try:
        stop()
    finally:  # a queue that nobody closes is closed by the collector, wherever that comes
        for queue in queues:
            _let_go(queue)
    # It does nothing the second time, also when the first time was broken off half-way.
    for worker in getattr(iterator, "_workers", ()):
        _end(worker)
    for queue in queues:
        queue.cancel_join_thread()
        queue.close()
    for thread in feeders:
        thread.join(_FEEDER_S)


def end_half_started(error: BaseException) -> None:
    """End the workers of an iterator whose start ``error`` broke off.

    Nobody holds such an iterator; only the frames of the error know it.
    """
    trace = error.__traceback__
    while trace is not None:
        names = trace.tb_frame.f_locals
        iterator, worker = names.get("self"), names.get("w")
        if isinstance(iterator, _Workers):
            known = iterator.__dict__.setdefault("_workers", [])
            iterator.__dict__.setdefault("_workers_status", [True] * len(known))
            iterator.__dict__.setdefault("_shutdown", not hasattr(iterator, "_workers_done_event"))
            iterator._shutdown_workers()
            if isinstance(worker, BaseProcess) and worker.pid is not None:
                _end(worker)
        trace = trace.tb_next


def _let_go(queue: Any) -> None:
    """Free the lock that nobody holds and that is taken: who closes the queue would wait for ever.

    Torch tells of a dead worker by an error out of a signal handler, which may come just after the
    lock was taken. The queue's own thread holds it for moments only.
    """
    lock = getattr(queue, "_notempty", None)
    if lock is not None:
        lock.acquire(timeout=_FEEDER_S)
        lock.release()


def _end(worker: Any) -> None:
    """End a worker process, also one that ignores being asked, and wait until it is gone."""
    if not worker.is_alive():
        return
    worker.terminate()
    worker.join(_LEAVE_S)
    if worker.is_alive():
        worker.kill()
        worker.join(_LEAVE_S)
