"""Pass a loader through untouched, and measure how long the loop waits for each batch."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import Any, Generic, TypeVar

Batch = TypeVar("Batch")


def _plainly(loader: Any, make: Callable[[], Iterator[Any]]) -> Iterator[Any]:
    return make()


class Watched(Generic[Batch]):
    """The loader as it is (same batches, length and attributes), with its waits measured.

    Args:
        loader: Any iterable.
        began: Called when an iteration begins, before the loader's own start.
        waiting: Gives the context in which the loop waits; the loader's start is waiting too.
        iterate: Gives the iterator of a loader, from what makes it.
        ended: Called when there is no further batch.
    """

    def __init__(
        self,
        loader: Iterable[Batch],
        *,
        began: Callable[[], None],
        waiting: Callable[[], AbstractContextManager[object]],
        iterate: Callable[[Any, Callable[[], Iterator[Any]]], Iterator[Any]] = _plainly,
        ended: Callable[[], object] = bool,
    ) -> None:
        self._loader = loader
        self._iterate = iterate
        self._ended = ended
        self._began = began
        self._waiting = waiting

    def __iter__(self) -> Iterator[Batch]:
        self._began()
        with self._waiting():
            iterator = self._iterate(self._loader, partial(iter, self._loader))
        while True:
            with self._waiting():
                try:
                    batch = next(iterator)
                except StopIteration:
                    self._ended()
                    return
                except BaseException:
                    # This iteration is over; a traceback would keep its worker processes alive.
                    end_iteration(self._loader, iterator)
                    raise
            yield batch
            del batch  # or it would live on while the next one is made

    def __len__(self) -> int:
        return len(self._loader)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> Any:
        if name == "_loader":  # of a copy that is being made
            raise AttributeError(name)
        return getattr(self._loader, name)


def end_iteration(loader: Any, iterator: Iterator[Any]) -> None:
    """End an iterator that belongs to nobody but one iteration; what the loader keeps lives on."""
    from workbench.workload.shutdown import shut_down

    kept = [loader, *getattr(loader, "__dict__", {}).values()]
    if not any(part is iterator for part in kept):
        shut_down(iterator)


def known_length(loader: object) -> int | None:
    """Iterations of one pass, where the loader tells."""
    try:
        return len(loader)  # type: ignore[arg-type]
    except Exception:  # noqa: BLE001 - of the user's code, which the loop does not call
        return None


def describe(loader: object) -> dict[str, Any]:
    """What a torch DataLoader, or something like it, says about itself."""
    found = {}
    for name, there in _SAID.items():
        with suppress(Exception):  # of the user's code, which the loop does not call
            found[name] = getattr(loader, there, None)
    with suppress(Exception):
        found["data_replicas"] = getattr(getattr(loader, "sampler", None), "num_replicas", None)
    return {name: value for name, value in found.items() if isinstance(value, int)}


_SAID = {
    "batch_size": "batch_size",
    "workers": "num_workers",
    "prefetch_factor": "prefetch_factor",
    "pin_memory": "pin_memory",
    "persistent_workers": "persistent_workers",
}
