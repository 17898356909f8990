"""How many steps after a pause are not like the others."""

from collections.abc import Mapping
from typing import Any

LEAD_MOST = 16


def lead_steps(loader: Mapping[str, Any]) -> int:
    """Steps that find batches which the loader's workers made ready in a pause; at least one.

    Args:
        loader: ``workers`` and ``prefetch_factor``, where there are any.
    """
    ready = (loader.get("workers") or 0) * (loader.get("prefetch_factor") or 0)
    return int(min(max(ready, 1), LEAD_MOST))
