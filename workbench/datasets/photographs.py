"""An image folder cut from real photographs that scikit-learn and scikit-image ship."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from workbench.datasets.cache import Recipe, Source, made
from workbench.datasets.packages import checksum, package_file, package_versions
from workbench.errors import DatasetError

RECIPE = 1
PURPOSE = "The image folder"
QUALITY = 88
"""JPEG quality: what cameras and web sites commonly use."""
TRAIN_WIDTH = 0.7
"""Training images come from the left of each photograph and validation images from the rest."""
VALIDATION_SHARE = 0.2
LEAST_CROP = 0.35
"""The smallest crop, as a part of the largest square that fits."""


@dataclass(frozen=True, kw_only=True)
class Photograph:
    """One photograph; its crops are a class."""

    label: str
    package: str
    file: str


PHOTOGRAPHS = (
    Photograph(label="astronaut", package="skimage", file="data/astronaut.png"),
    Photograph(label="cat", package="skimage", file="data/chelsea.png"),
    Photograph(label="coffee", package="skimage", file="data/coffee.png"),
    Photograph(label="flower", package="sklearn", file="datasets/images/flower.jpg"),
    Photograph(label="galaxies", package="skimage", file="data/hubble_deep_field.jpg"),
    Photograph(label="retina", package="skimage", file="data/retina.jpg"),
    Photograph(label="rocket", package="skimage", file="data/rocket.jpg"),
    Photograph(label="temple", package="sklearn", file="datasets/images/china.jpg"),
    Photograph(label="tissue", package="skimage", file="data/ihc.png"),
)


def images(count: int = 3600, size: int = 256, *, progress: bool = True) -> Path:
    """Folder with ``train/<class>/`` and ``val/<class>/`` of real JPEG files, made on first use.

    Each class is one photograph, and each file a random square crop of it, resized to ``size`` by
    ``size`` pixels. One file in five is for validation; no pixel of those is in a training file.
    The same call gives the same files, byte for byte, under the same version of Pillow.

    Args:
        count: Files in all, at least ten for each of the nine classes.
        size: Width and height of each file in pixels.
        progress: Show a progress bar while the files are made.

    Raises:
        MissingExtraError: Pillow, scikit-learn or scikit-image is not installed.
        DatasetError: The cache folder cannot be written, or an argument is too small.
    """
    least = 10 * len(PHOTOGRAPHS)
    if count < least or size < 16:
        raise DatasetError(
            f"images(count={count}, size={size}) is too small; "
            f"give a count of at least {least} and a size of at least 16."
        )
    return made(
        Recipe(
            name="images",
            version=RECIPE,
            parameters={"count": count, "size": size, "quality": QUALITY},
            versions=package_versions(("PIL", "sklearn", "skimage"), PURPOSE),
            make=lambda folder: _cut_all(folder, count, size, progress=progress),
        )
    )


def _cut_all(folder: Path, count: int, size: int, *, progress: bool) -> list[Source]:
    from tqdm.auto import tqdm

    sources = []
    each, rest = divmod(count, len(PHOTOGRAPHS))
    with tqdm(total=count, desc="making images", disable=not progress, leave=False) as bar:
        for number, photograph in enumerate(PHOTOGRAPHS):
            path = package_file(photograph.package, photograph.file, PURPOSE)
            sources.append(checksum(path, f"{photograph.package}/{photograph.file}"))
            for _ in _cut(path, photograph.label, folder, each + (number < rest), size):
                bar.update()
    return sources


def _cut(path: Path, label: str, folder: Path, count: int, size: int) -> Iterator[Path]:
    """Write ``count`` crops of one photograph, and give each path when it is written."""
    from PIL import Image

    with Image.open(path) as opened:
        photograph = opened.convert("RGB")
    validation = round(count * VALIDATION_SHARE)
    for part, number in (("train", count - validation), ("val", validation)):
        into = folder / part / label
        into.mkdir(parents=True)
        for index in range(number):
            chance = Random(f"{label} {part} {index}")  # noqa: S311 - repeatable, not secret
            target = into / f"{index:05d}.jpg"
            encoded = io.BytesIO()  # Pillow hides why a write failed, Python does not
            _crop(photograph, part, size, chance).save(encoded, "JPEG", quality=QUALITY)
            target.write_bytes(encoded.getvalue())
            yield target


def _crop(photograph: Any, part: str, size: int, chance: Random) -> Any:
    from PIL import Image

    width, height = photograph.size
    border = round(width * TRAIN_WIDTH)
    left, right = (0, border) if part == "train" else (border, width)
    side = chance.uniform(LEAST_CROP, 1.0) * min(right - left, height)
    x = chance.uniform(left, right - side)
    y = chance.uniform(0, height - side)
    # Whole pixels: a resize reads the pixels that its box touches, and none may cross the border.
    box = (int(x), int(y), int(x) + int(side), int(y) + int(side))
    crop = photograph.crop(box).resize((size, size), Image.Resampling.BICUBIC)
    if chance.random() < 0.5:
        crop = crop.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return crop
