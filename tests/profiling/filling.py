"""Fill /dev/shm with the batches of a worker; a program, because its /dev/shm is a small one.

Prints a line of JSON: the error with its notes, the steps of the Run, and the processes left.
"""

import json
import multiprocessing
import sys
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

import workbench as wb
from workbench.errors import WorkbenchError


class Growing(Dataset[Tensor]):
    """From sample ``at`` on a sample has 4 MB; four are a batch."""

    def __init__(self, at: int) -> None:
        self.at = at

    def __len__(self) -> int:
        return 400

    def __getitem__(self, index: int) -> Tensor:
        return torch.ones(1_000_000 if index >= self.at else 10)


def step(model: Any, batch: Tensor) -> None:
    batch.sum()


def main(how: str, at: int, folder: str) -> None:
    loader, found = DataLoader(Growing(at), batch_size=4, num_workers=1), dict[str, Any]()
    cap = wb.capture(f"{folder}/captured", warmup=2, steps=3)
    try:
        if how == "profile":
            work = wb.Workload(nn.Linear(1, 1), loader, step=step)
            wb.profile(work, folder=folder, time_limit_s=60, progress=False)
        else:
            with cap:
                for batch in cap.watch(loader):
                    step(None, batch)
                    cap.step()
    except Exception as error:  # noqa: BLE001 - told
        found["error"] = [type(error).__name__, str(error), *getattr(error, "__notes__", ())]
    try:
        steps = cap.run.steps
        found["steps"] = None if steps is None else len(steps)
    except WorkbenchError as error:
        found["steps"] = str(error)
    found["left"] = [child.pid for child in multiprocessing.active_children()]
    sys.stdout.write(f"{json.dumps(found)}\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
