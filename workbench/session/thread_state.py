"""What torch keeps for each thread, brought from the thread that starts a session to its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import _device

_DEVICES = ("cpu", "cuda", "xpu", "mps")


class ThreadState:
    """Gradient mode, autocast, default device and current device of the thread that makes it."""

    def __init__(self) -> None:
        self._grad = torch.is_grad_enabled()
        self._default = _device.CURRENT_DEVICE
        self._autocast = tuple(
            (kind, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind))
            for kind in _DEVICES
        )
        self._cache = torch.is_autocast_cache_enabled()
        cuda: Any = torch.cuda
        self._cuda: int | None = cuda.current_device() if cuda.is_initialized() else None

    @contextmanager
    def here(self) -> Iterator[None]:
        """Let the calling thread be as that one was; it ends with its thread."""
        torch.set_grad_enabled(self._grad)
        for kind, enabled, dtype in self._autocast:
            if torch.is_autocast_enabled(kind) != enabled:
                torch.set_autocast_enabled(kind, enabled)
            if torch.get_autocast_dtype(kind) != dtype:
                torch.set_autocast_dtype(kind, dtype)
        if torch.is_autocast_cache_enabled() != self._cache:
            torch.set_autocast_cache_enabled(self._cache)
        if self._cuda is not None:
            torch.cuda.set_device(self._cuda)
        if self._default is None:
            yield
            return
        with torch.device(self._default):
            yield
