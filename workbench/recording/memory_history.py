"""What the caching allocator of a GPU did while steps were recorded, as torch's own snapshot.

The history is switched on for the profiled steps alone, since each request then costs some
microseconds, and off again behind them. One that the user had switched on goes on as it was:
switching ours on would empty it.
"""

import pickle
import sys
from collections.abc import Callable
from typing import Any

from workbench.store.memory import SNAPSHOT_LIMIT

MOST_ENTRIES = 100_000
"""Requests and returns that are kept, the last ones; each takes some hundred bytes in the file."""
CARRIED = "workbench_memory_snapshot"
"""Attribute of an out-of-memory error under which the history of its last moments travels."""


class MemoryHistory:
    """The history of one recording, between :meth:`start` and :meth:`stop`.

    Args:
        memory: ``torch.cuda.memory``, of ROCm too; ``None`` where nothing is to be recorded.
        enabled: Whether somebody records a history now.
    """

    def __init__(self, memory: Any, enabled: Callable[[], bool]) -> None:
        self.data: bytes | None = None
        """The snapshot as a pickle of plain containers, once it was stopped."""
        self.messages: list[str] = []
        self._memory = memory
        self._enabled = enabled
        self._ours = False
        self._runs = False

    def start(self) -> None:
        """Record from now on, unless somebody does already."""
        if self._memory is None or self._runs:
            return
        try:
            self._ours = not self._enabled()
            if self._ours:
                self._memory._record_memory_history(
                    "all", context="alloc", stacks="python", max_entries=MOST_ENTRIES
                )
            self._runs = True
        except (RuntimeError, TypeError, AttributeError) as error:  # another torch, no device
            self._ours = False
            self.messages.append(f"the history of device memory was not recorded: {error}")

    def stop(self) -> None:
        """Take the snapshot, then leave things as the user had them; doing it twice is fine."""
        if not self._runs:
            return
        self._runs = False
        try:
            self._take()
        finally:
            if self._ours:
                self._memory._record_memory_history(None)
        failed = sys.exc_info()[1]
        if self.data is not None and failed is not None and "out of memory" in str(failed):
            setattr(failed, CARRIED, self.data)

    def _take(self) -> None:
        try:
            data = pickle.dumps(self._memory._snapshot(), protocol=4)
        except (RuntimeError, MemoryError, AttributeError) as error:
            self.messages.append(f"the history of device memory could not be read: {error}")
            return
        if len(data) > SNAPSHOT_LIMIT:
            self.messages.append(
                f"the history of device memory was left out: {len(data):,} bytes are more than the "
                f"{SNAPSHOT_LIMIT:,} that are read"
            )
            return
        self.data = data


def memory_history(wanted: bool, device_type: str | None) -> MemoryHistory:
    """The history for a device: of a GPU whose memory is asked for; of others an empty one."""
    if not wanted or device_type != "cuda":
        return MemoryHistory(None, bool)
    import torch

    return MemoryHistory(torch.cuda.memory, history_enabled)


def current_history() -> bytes | None:
    """The history that the user has switched on, as it is now; ``None`` without one."""
    if not history_enabled():
        return None
    import torch

    try:
        data = pickle.dumps(torch.cuda.memory._snapshot(), protocol=4)
    except (RuntimeError, MemoryError):  # of little memory that is left
        return None
    return data if len(data) <= SNAPSHOT_LIMIT else None


def history_enabled() -> bool:
    """Whether a history of device memory is being recorded in this process."""
    import torch

    ask = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    running: Any = torch.cuda.is_initialized
    return bool(ask is not None and running() and ask())
