"""The global random number generators of Python, numpy and torch on every device in use."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch


@dataclass(frozen=True, kw_only=True)
class SavedRandomState:
    """States of the global generators, each with the function that puts it back."""

    states: tuple[tuple[Callable[[Any], Any], Any], ...]

    def restore(self) -> None:
        """Put every generator back to where it was."""
        for put_back, state in self.states:
            put_back(state)


def save_random_state() -> SavedRandomState:
    """Read every global generator; a device that is not in use yet is not started for it."""
    return SavedRandomState(states=tuple(_states()))


def _states() -> Iterator[tuple[Callable[[Any], Any], Any]]:
    yield random.setstate, random.getstate()
    yield np.random.set_state, np.random.get_state()
    yield torch.set_rng_state, torch.get_rng_state()
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        yield torch.cuda.set_rng_state_all, torch.cuda.get_rng_state_all()
    if torch.xpu.is_initialized():  # type: ignore[no-untyped-call]
        yield torch.xpu.set_rng_state_all, torch.xpu.get_rng_state_all()
    if torch.backends.mps.is_available():
        yield torch.mps.set_rng_state, torch.mps.get_rng_state()
