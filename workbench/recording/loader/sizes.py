"""How many bytes a batch holds, in any nesting."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

_COUNTED = (torch.Tensor, np.ndarray)
LEAVES_MOST = 512
"""Parts of a batch that are looked at; of a batch with more, the size is not known."""


def bytes_in(batch: Any) -> int | None:
    """Bytes of all tensors and arrays in a batch; ``None`` without any, or where it cannot tell.

    Batches of very many parts are not counted; sparse tensors, and classes of the user's own, may
    refuse to tell.
    """
    try:
        return _bytes_in(batch)
    except Exception:  # noqa: BLE001 - whatever objects of the user's raise
        return None


def _bytes_in(batch: Any) -> int | None:
    total = found = 0
    waiting = [batch]
    for _ in range(LEAVES_MOST):
        if not waiting:
            return total if found else None
        part = waiting.pop()
        if isinstance(part, _COUNTED):
            total += part.nbytes
            found += 1
        elif isinstance(part, Mapping):
            waiting += part.values()
        elif isinstance(part, list | tuple):
            waiting += part
    return None
