"""Leave a caller's inference mode, in which no tensor can be trained on or put back."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch


def outside_inference_mode() -> AbstractContextManager[Any]:
    """A block in which tensors are ordinary ones; where they are already, nothing changes."""
    # Left without need, inference mode would switch gradients on.
    return torch.inference_mode(False) if torch.is_inference_mode_enabled() else nullcontext()
