"""The first batch of a planted fault, without its worker processes."""

from typing import Any


def first_batch(made: Any) -> Any:
    """Four samples; in one call where the data set can."""
    several = getattr(made.dataset, "__getitems__", lambda some: [made.dataset[i] for i in some])
    return made.collate_fn(several(list(range(4))))
