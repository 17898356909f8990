"""Handwritten digits that scikit-learn ships, for quick checks of accuracy."""

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from workbench.datasets.cache import Recipe, Source, made
from workbench.datasets.packages import checksum, package_file, package_versions

RECIPE = 1
PURPOSE = "The digits data set"
FILE = "datasets/data/digits.csv.gz"
TRAIN = 1437
"""Four fifths; the file is ordered by writers, so most of the rest was written by others."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Digits:
    """Images of 8 × 8 pixels from 0 to 1, float32 of shape (n, 1, 8, 8), and labels 0 to 9."""

    train_images: NDArray[np.float32]
    train_labels: NDArray[np.int64]
    val_images: NDArray[np.float32]
    val_labels: NDArray[np.int64]


def digits() -> Digits:
    """The 1 797 digits in two parts, made on first use.

    Raises:
        MissingExtraError: scikit-learn is not installed.
        DatasetError: The cache folder cannot be written.
    """
    folder = made(
        Recipe(
            name="digits",
            version=RECIPE,
            parameters={"train": TRAIN},
            versions=package_versions(("sklearn",), PURPOSE),
            make=_write,
        )
    )
    with np.load(folder / "digits.npz") as arrays:
        return Digits(**{name: arrays[name] for name in arrays.files})


def _write(folder: Path) -> list[Source]:
    path = package_file("sklearn", FILE, PURPOSE)
    with gzip.open(path, "rt", encoding="ascii") as file:
        table = np.loadtxt(file, delimiter=",")
    images = (table[:, :-1] / 16).astype(np.float32).reshape(-1, 1, 8, 8)
    labels = table[:, -1].astype(np.int64)
    np.savez(
        folder / "digits.npz",
        train_images=images[:TRAIN],
        train_labels=labels[:TRAIN],
        val_images=images[TRAIN:],
        val_labels=labels[TRAIN:],
    )
    return [checksum(path, f"sklearn/{FILE}")]
