"""The parts of the exposed wait for input, and the record of a split."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Times = NDArray[np.int64]
Rows = NDArray[np.int32]

PARTS = (
    "storage",
    "decode",
    "collate",
    "transfer",
    "pin",
    "copy",
    "startup",
    "starvation",
    "oversubscription",
    "other",
)
"""In the order of a batch's way; then what keeps it from going its way."""
OTHER = ("blocked", "queued", "handed", "unseen", "after", "nowhere")
"""What ``other`` can be. *blocked*: making samples, and neither on a processor nor ready for one,
nor in a read of a file: the network, a lock, sleep; *queued*: its worker was idle and had not begun
it (the sampler, the way of an index); *handed*: it lay ready and the loop's thread had other work;
*unseen*: it was where nothing was recorded; *after*: the loader had given it, and the range that
counts as waiting went on; *nowhere*: no batch is known to have been waited for."""
PART = {name: place for place, name in enumerate(PARTS)}
"""Column of each part in the amounts of a split."""


class StallPieces(NamedTuple):
    """Stretches of the exposed wait on the host's clock, in time order, as columns."""

    start: Times
    end: Times
    batch: Rows
    """Place of the batch that was waited for in the loader's records, or -1."""
    place: Rows
    """Place of the step among those asked for, or -1 for none."""
    amounts: Times
    """A row a piece, a column a part, in nanoseconds: a row sums to the length of its piece."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Stalls:
    """The exposed wait for input, divided."""

    exposed_ns: int
    by_part: Mapping[str, int | None]
    """Nanoseconds by part, in the order of ``PARTS``; they sum to the exposed wait exactly.
    ``None``: could not be seen, and what it took is in ``other``."""
    other_by: Mapping[str, int]
    """Nanoseconds of ``other`` by what they were, of ``OTHER``; they sum to it exactly."""
    pieces: StallPieces
    workers: int
    """Most worker processes that a loader ran with; 0: the training process loads."""
    fetching: float | None
    """Workers that fetched at the same time on average, over the waits that had begun to be
    served; ``None`` without workers or with none seen."""

    def steps(self, count: int) -> Times:
        """A row for each of so many steps and one for what lies in none; a column a part."""
        found = np.zeros((count + 1, len(PARTS)), np.int64)
        np.add.at(found, self.pieces.place, self.pieces.amounts)
        return found


class Unseen(NamedTuple):
    """Why there is no split."""

    reason: str


def rounded(length: Times, shares: NDArray[np.float64]) -> Times:
    """Whole nanoseconds by share, that sum to each length."""
    ends = np.rint(length[:, None] * np.minimum(np.cumsum(shares, axis=1), 1.0)).astype(np.int64)
    ends[:, -1] = length
    parts: Times = np.diff(ends, axis=1, prepend=0)
    return parts
