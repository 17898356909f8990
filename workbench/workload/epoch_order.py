"""The order of one epoch, handed out to one loader after another without losing the place."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from torch.utils.data import BatchSampler, DataLoader

from workbench.workload.snapshot.objects import save_generator
from workbench.workload.snapshot.random_state import save_random_state


class EpochOrder:
    """What a sampler gives, remembered from the place of the training on.

    Loaders read ahead: workers hold indices that nobody has trained on. When another loader takes
    over, it is given these first and then the rest of the same order, shuffled as it was.
    """

    def __init__(self) -> None:
        self.sampler: Iterable[Any] = ()
        """The user's own; a new epoch asks it for its order."""
        self.whole = 1
        """Indices that make a whole batch."""
        self.loader: DataLoader[Any] | None = None
        """Whose order it is."""
        self._rest: Iterator[Any] | None = None
        self._ahead: deque[Any] = deque()
        self._held_back = False

    @property
    def under_way(self) -> bool:
        """Whether an epoch has begun and is not over."""
        return self._rest is not None

    def holds(self, count: int) -> bool:
        """Whether so many indices are left of the epoch."""
        while self._rest is not None and len(self._ahead) < count:
            try:
                self._ahead.append(next(self._rest))
            except StopIteration:
                return False
        return len(self._ahead) >= count

    def __iter__(self) -> Iterator[Any]:
        """The rest of the epoch, or a new one."""
        if self._rest is None:
            self._ahead.clear()
            self._rest = iter(self.sampler)
        rest = self._rest
        yield from tuple(self._ahead)
        for index in rest:  # not "yield from": that would end the rest with the loader
            self._ahead.append(index)
            yield index
            if self._held_back:
                return

    def __len__(self) -> int:
        return len(self.sampler)  # type: ignore[arg-type]

    def trained(self, count: int) -> None:
        """So many indices are behind the place of the training."""
        for _ in range(min(count, len(self._ahead))):
            self._ahead.popleft()

    def rest(self) -> list[Any] | None:
        """What is left of the epoch, in its order; ``None`` where none is under way.

        A sampler without an end cannot be read to it: its epoch begins anew elsewhere.
        """
        if self._rest is None or not hasattr(self.sampler, "__len__"):
            return None
        self._ahead.extend(self._rest)
        self._rest = iter(())
        return list(self._ahead)

    def resume(self, rest: Iterable[Any]) -> None:
        """Go on with what was left of an epoch elsewhere."""
        self._rest = iter(tuple(rest))
        self._ahead.clear()

    def generators(self) -> list[Any]:
        """The user's own random generators behind the order, each once."""
        owners = (self.loader, self.sampler, getattr(self.sampler, "sampler", None))
        found = [getattr(owner, "generator", None) for owner in owners]
        return list({id(one): one for one in found if hasattr(one, "get_state")}.values())

    def hold_back(self) -> None:
        """Hand out no more; what is handed out will all be taken."""
        self._held_back = True

    def go_on(self) -> None:
        """All that was handed out has been taken; the rest goes to another loader."""
        self._held_back = False
        self._ahead.clear()

    def end(self) -> None:
        """The epoch is over."""
        self._rest = None
        self._ahead.clear()


def in_order(loader: DataLoader[Any], order: EpochOrder) -> tuple[DataLoader[Any], int]:
    """A copy of a loader that takes its indices from ``order``.

    Returns:
        The copy, and how many indices make a whole batch of it.
    """
    copy: DataLoader[Any] = object.__new__(type(loader))
    state = dict(loader.__dict__)
    state["_iterator"] = None
    samples = 1
    if loader.batch_sampler is None:
        order.sampler = loader.sampler
        state["sampler"] = order
    elif type(loader.batch_sampler) is BatchSampler:
        inner = loader.batch_sampler
        order.sampler = inner.sampler
        samples = inner.batch_size
        state["sampler"] = order
        state["batch_sampler"] = BatchSampler(order, inner.batch_size, inner.drop_last)
    else:
        order.sampler = loader.batch_sampler
        state["batch_sampler"] = order
    copy.__dict__.update(state)
    order.whole, order.loader = samples, loader
    return copy, samples


def begun(loader: DataLoader[Any], order: EpochOrder) -> Iterator[Any]:
    """What a loader gives in an epoch of this order, or in the rest of one.

    A loader draws a seed for its workers, which a training that goes on must not notice.
    """
    if not order.under_way:
        return iter(loader)
    generator = getattr(loader, "generator", None)
    mine = None if generator is None else save_generator(generator)
    before = save_random_state()
    try:
        return iter(loader)
    finally:
        before.restore()
        if mine is not None:
            mine.restore()
