"""Torch data sets over the material on disk; importing this module imports torch."""

import io
from pathlib import Path
from random import Random
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset, TensorDataset

from workbench.datasets.handwriting import digits
from workbench.errors import DatasetError, MissingExtraError

Part = Literal["train", "val"]

LEAST_AREA = 0.5
"""The smallest crop that augmentation takes, as a part of the image's side."""


class ImageFolder(Dataset[tuple[Tensor, int]]):
    """JPEG files in one folder a class, read and decoded anew each time they are asked for.

    Each item costs real work: reading the file, decoding all of its pixels, and a resize. With
    ``augment`` it is cut and turned over at random, which depends on the item alone and touches no
    random state, so that runs with different workers see the same batches.

    Args:
        folder: The folder that holds one folder a class, such as ``images() / "train"``.
        size: Width and height that an item is resized to.
        augment: How many rounds of random crop, flip, blur and colour an item gets.
        decode_repeats: How often the file is decoded. More than once is of no use to a model: it
            plants a slow decode where one is wanted, in demonstrations and tests.

    Raises:
        DatasetError: The folder holds no class folders with JPEG files.
        MissingExtraError: Pillow is not installed.
    """

    def __init__(
        self, folder: Path | str, *, size: int = 64, augment: int = 0, decode_repeats: int = 1
    ) -> None:
        try:
            import PIL  # noqa: F401 - said here, not by a worker later
        except ImportError:
            raise MissingExtraError("pillow", "data", "Decoding images") from None
        root = Path(folder)
        found = sorted(root.glob("*/*.jpg"))
        if not found:
            raise DatasetError(
                f"{root} holds no JPEG files in class folders; "
                'give a folder such as workbench.datasets.images() / "train".'
            )
        self.classes = sorted({path.parent.name for path in found})
        number = {name: index for index, name in enumerate(self.classes)}
        self.files = [str(path) for path in found]
        self.labels = [number[path.parent.name] for path in found]
        self.size = size
        self.augment = augment
        self.decode_repeats = decode_repeats

    def __len__(self) -> int:
        """Number of files."""
        return len(self.files)

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        """One image, float32 of shape (3, size, size) from 0 to 1, and its class number."""
        from PIL import Image

        image = self._decode(Path(self.files[index]))
        chance = Random(index)  # noqa: S311 - repeatable, not secret
        for _ in range(self.augment):
            image = _augmented(image, chance)
        image = image.resize((self.size, self.size), Image.Resampling.BILINEAR)
        pixels = torch.from_numpy(np.array(image, dtype=np.uint8))
        return pixels.permute(2, 0, 1).to(torch.float32).div_(255), self.labels[index]

    def _decode(self, path: Path) -> Any:
        from PIL import Image

        try:
            data = path.read_bytes()
            for _ in range(max(1, self.decode_repeats)):
                with Image.open(io.BytesIO(data)) as opened:
                    image = opened.convert("RGB")
        except (OSError, SyntaxError) as error:
            raise DatasetError(
                f"{path} cannot be read as an image ({error}). "
                "Delete its data set in the cache folder; it is made again on the next use."
            ) from error
        return image


def _augmented(image: Any, chance: Random) -> Any:
    """A random crop, turned over half the time, a little blurred, and with other colours."""
    from PIL import Image, ImageEnhance, ImageFilter

    width, height = image.size
    side = chance.uniform(LEAST_AREA, 1.0) * min(width, height)
    left, top = chance.uniform(0, width - side), chance.uniform(0, height - side)
    box = (left, top, left + side, top + side)
    image = image.resize((width, height), Image.Resampling.BILINEAR, box=box)
    if chance.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    image = image.filter(ImageFilter.GaussianBlur(chance.uniform(0.1, 1.0)))
    return ImageEnhance.Color(image).enhance(chance.uniform(0.7, 1.3))


class TextWindows(Dataset[tuple[Tensor, Tensor]]):
    """Windows of bytes from a text file, with the same window one byte later as the target.

    The last tenth of the file is for validation. Byte values are the tokens: 256 in all.

    Args:
        file: A text file, such as ``text() / "prose.txt"``.
        length: Bytes in a window.
        part: ``train`` or ``val``.

    Raises:
        DatasetError: The file is missing or shorter than one window.
    """

    tokens = 256

    def __init__(self, file: Path | str, *, length: int = 128, part: Part = "train") -> None:
        path = Path(file)
        try:
            data = np.fromfile(path, dtype=np.uint8)
        except OSError as error:
            raise DatasetError(
                f"{path} cannot be read ({error.strerror}); "
                'give a file such as workbench.datasets.text() / "prose.txt".'
            ) from error
        border = data.size * 9 // 10
        self.data = torch.from_numpy(data[:border] if part == "train" else data[border:])
        self.length = length
        if len(self) == 0:
            raise DatasetError(
                f"{path} is too short for one window of {length} bytes: give a smaller length."
            )

    def __len__(self) -> int:
        """Number of windows, which follow each other without overlap."""
        return (len(self.data) - 1) // self.length

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        """Input and target, int64 of shape (length,)."""
        if not 0 <= index < len(self):
            raise IndexError(index)
        start = index * self.length
        window = self.data[start : start + self.length + 1].to(torch.int64)
        return window[:-1], window[1:]


def digit_tensors(part: Part = "train") -> TensorDataset:
    """The digits as a torch data set of images and labels."""
    found = digits()
    if part == "train":
        arrays = found.train_images, found.train_labels
    else:
        arrays = found.val_images, found.val_labels
    return TensorDataset(*(torch.from_numpy(array) for array in arrays))
