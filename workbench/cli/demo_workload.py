"""The training loop that ``workbench demo`` profiles: a small network behind a slow decode.

Everything is at module level, so that worker processes can be started in any way.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from workbench.datasets import images
from workbench.datasets.loading import ImageFolder
from workbench.workload import Workload

BATCH_SIZE = 32
IMAGE_SIZE = 64
AUGMENT = 1
"""One round of crop, flip, blur and colour: with the decode, most of a step on any CPU."""
SEED = 20


class SmallNetwork(nn.Module):
    """Three convolutions and a classifier: little work, so that the input shows."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
        )
        self.classifier = nn.Linear(64, classes)

    def forward(self, image: Tensor) -> Tensor:
        """Class scores, of shape (batch, classes)."""
        scores: Tensor = self.classifier(self.features(image).flatten(1))
        return scores


def demo_workload(folder: Path | None = None) -> Workload:
    """The demo's model, data, loss and optimizer; makes the image folder on first use.

    Args:
        folder: Class folders of JPEG files; the training part of the image set when left out.
    """
    data = ImageFolder(
        images() / "train" if folder is None else folder, size=IMAGE_SIZE, augment=AUGMENT
    )
    model = _seeded_model(len(data.classes))
    return Workload(
        model,
        data,
        loss=nn.functional.cross_entropy,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
        batch_size=BATCH_SIZE,
        name="demo",
    )


def _seeded_model(classes: int) -> Any:
    """The same weights each time, without touching the caller's random state."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        return SmallNetwork(classes)
