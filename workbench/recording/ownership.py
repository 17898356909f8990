"""One profiler at a time in this process, and never one inside the user's own.

Two profilers in two threads crash torch (2.13); one inside another leaves the outer one empty or
crashes it, also when the outer one only waits in the warm-up of its schedule.
"""

import gc
import multiprocessing
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from workbench.errors import ProfilerBusyError

_MUTEX = threading.Lock()
_holders: list[weakref.ref["Ownership"]] = []


class Ownership:
    """The right to drive torch's profiler; it ends with ``release`` or when it is forgotten."""

    def __init__(
        self, what: str, give_way: Callable[[], None] | None, end: Callable[[], None] | None
    ) -> None:
        self.what = what
        self.thread = threading.current_thread()
        self._give_way = give_way
        self._end = end
        self._lent = False
        self._under: Ownership | None = None

    def make_room(self) -> None:
        """End the holder if it gives way, or if its thread is over and nobody else will."""
        end = self._give_way if self.thread.is_alive() else self._end
        if end is not None:
            end()
            self.release()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Inside, what this thread calls may profile; the right comes back with its release."""
        self._lent = True
        try:
            yield
        finally:
            self._lent = False

    def lends_here(self) -> bool:
        """Whether a claim of the calling thread is granted below this one."""
        return self._lent and threading.current_thread() is self.thread

    def release(self) -> None:
        """Let others profile; doing it twice is fine."""
        with _MUTEX:
            under, self._under = self._under, None
            mine = any(one() is self for one in _holders)
            _holders[:] = [one for one in _holders if one() not in (None, self)]
            if mine and under is not None:
                _holders.append(weakref.ref(under))


def claim(
    what: str,
    *,
    give_way: Callable[[], None] | None = None,
    end: Callable[[], None] | None = None,
) -> Ownership:
    """Take the process-wide right to profile.

    Args:
        what: Who asks, as the user wrote it, such as ``wb.profile``.
        give_way: Ends the holder when somebody else asks later: for captures opened by a trainer's
            callback, which nobody closes when the trainer fails.
        end: Ends a holder that was never left and whose thread is over.

    Raises:
        ProfilerBusyError: a capture or profile of ours, or a torch profiler, is active.
    """
    holder = _holder()
    if holder is not None and not holder.lends_here():
        holder.make_room()
    mine = Ownership(what, give_way, end)
    with _MUTEX:
        other = _holder()
        if other is not None and other.lends_here():
            mine._under, other = other, None
        if other is None:
            _holders[:] = [weakref.ref(mine)]
    if other is not None:
        raise ProfilerBusyError(
            f"{other.what} is already running in this process (thread {other.thread.name!r}), and "
            "torch can record only once at a time: wait until it has ended, then start "
            f"{what} again."
        )
    try:
        refuse_foreign_profiler()
    except BaseException:
        mine.release()  # a traceback may keep it alive for long
        raise
    return mine


def refuse_foreign_profiler() -> None:
    """Refuse when a torch profiler that is not ours is active anywhere in this process.

    Raises:
        ProfilerBusyError: telling how to stop it and what to do with its trace.
    """
    from torch._C._autograd import _profiler_enabled
    from torch.autograd import profiler

    if profiler._is_profiler_enabled or _profiler_enabled():
        raise ProfilerBusyError(_foreign("a torch profiler is already recording"))
    if _scheduled_profiler_waits():
        gc.collect()  # one that nobody can reach any more, as a Trainer that failed leaves it
    if _scheduled_profiler_waits():
        raise ProfilerBusyError(_foreign("a torch profiler with a schedule is waiting to record"))


def refuse_unfinished_start() -> None:
    """Refuse in a worker process that still imports the script which is to start it.

    Raises:
        ProfilerBusyError: naming the line that keeps a worker from running the script again.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise ProfilerBusyError(
            "a worker process is running your script again, because workers started by spawn or "
            "forkserver import it: put what it does below  if __name__ == '__main__':"
        )


def _foreign(what: str) -> str:
    return (
        f"{what} in this process, and a second one would empty it. Stop it first (leave its with "
        "block, or call its stop()). Or keep it: export its trace with "
        "export_chrome_trace('trace.json') and look at it with wb.open('trace.json')."
    )


def _holder() -> Ownership | None:
    return _holders[0]() if _holders else None


def _scheduled_profiler_waits() -> bool:
    """Whether a scheduled torch profiler was entered but does not record yet.

    torch offers no question for it. Its step counter tells that one may exist; only then are the
    objects looked through.
    """
    from torch.autograd import profiler
    from torch.profiler import profile

    if "ProfilerStep" not in getattr(profiler.KinetoStepTracker, "_step_dict", {}):
        return False
    return any(
        issubclass(type(thing), profile) and getattr(thing, "step_rec_fn", None) is not None
        for thing in gc.get_objects()
    )
