"""``nn.DataParallel``: copies of the model on every device in each step, for comparison."""

from typing import Any

import torch
from torch import nn

from workbench.errors import SettingError
from workbench.settings import Parallel, Settings
from workbench.workload.workload import Workload

ADVICE = (
    "DataParallel copies the model to every device in each step and runs them from one interpreter:"
    " parallel='ddp' is faster on the same devices"
)


def check_data_parallel(work: Workload, settings: Settings, device: torch.device) -> list[str]:
    """What must be said of ``parallel='dp'``; nothing for any other setting.

    Raises:
        SettingError: When it could not act, or would pass the batch through without a word.
    """
    parallel = settings.parallel
    if not isinstance(parallel, Parallel) or parallel.mode != "dp":
        return []
    there = torch.cuda.device_count() if device.type == "cuda" else 0
    wanted = parallel.world_size or max(there, 2)
    if there < wanted:
        raise SettingError(
            f"parallel='dp' cannot act: DataParallel needs {wanted} CUDA devices, and the model on "
            f"{device} has {there}; without them torch passes every batch through in silence. Use "
            "parallel='ddp'."
        )
    if not isinstance(work.model, nn.Module):
        raise SettingError(
            f"parallel='dp' cannot act on a {type(work.model).__name__}: DataParallel copies an "
            "nn.Module. Give the workload one, or leave parallel out."
        )
    return [ADVICE]


def data_parallel(work: Workload, parallel: Parallel, device: torch.device) -> Any:
    """The model on the first devices, its own first."""
    count = parallel.world_size or torch.cuda.device_count()
    own = device.index or 0
    others = [index for index in range(torch.cuda.device_count()) if index != own]
    return nn.DataParallel(work.model, device_ids=[own, *others][:count])
