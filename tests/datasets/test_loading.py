"""What do the torch data sets give, and do they do honest work?"""

import pickle
import random
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

from workbench.datasets.loading import ImageFolder, TextWindows, digit_tensors
from workbench.errors import DatasetError


@pytest.fixture
def photographs(tmp_path: Path) -> Path:
    """Two classes of two images each: one red, one blue."""
    for label, colour in (("blue", (0, 0, 255)), ("red", (255, 0, 0))):
        folder = tmp_path / "photographs" / label
        folder.mkdir(parents=True)
        for name in ("a.jpg", "b.jpg"):
            Image.new("RGB", (40, 30), colour).save(folder / name, quality=95)
    return tmp_path / "photographs"


def test_an_item_is_the_decoded_image_with_its_class(photographs: Path):
    data = ImageFolder(photographs, size=16)
    assert data.classes == ["blue", "red"]
    assert len(data) == 4
    image, label = data[2]
    assert label == 1
    assert (image.shape, image.dtype) == ((3, 16, 16), torch.float32)
    assert image[0].min() > 0.95
    assert image[2].max() < 0.05


def test_augmentation_depends_on_the_item_alone_and_touches_no_random_state(photographs: Path):
    noise = np.random.default_rng(1).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(photographs / "red" / "a.jpg")
    data = ImageFolder(photographs, size=16, augment=1)
    before = random.getstate(), torch.get_rng_state()
    first, again = data[2][0], data[2][0]
    assert torch.equal(first, again)
    assert random.getstate() == before[0]
    assert torch.equal(torch.get_rng_state(), before[1])
    assert not torch.equal(first, ImageFolder(photographs, size=16)[2][0])


def test_repeats_of_the_decode_cost_time_and_change_nothing(tmp_path: Path):
    noise = np.random.default_rng(2).integers(0, 256, (512, 512, 3), dtype=np.uint8)
    (tmp_path / "noise").mkdir()
    Image.fromarray(noise).save(tmp_path / "noise" / "a.jpg", quality=95)
    once, often = (ImageFolder(tmp_path, size=16, decode_repeats=n) for n in (1, 20))
    assert torch.equal(once[0][0], often[0][0])
    spent = []
    for data in (once, often):
        start = time.process_time()
        data[0]
        spent.append(time.process_time() - start)
    assert spent[1] > 4 * spent[0]


def test_workers_of_any_kind_can_take_it(photographs: Path):
    data = ImageFolder(photographs, size=16, augment=1)
    assert torch.equal(pickle.loads(pickle.dumps(data))[1][0], data[1][0])
    alone = torch.stack([image for image, _ in data])  # type: ignore[attr-defined]
    (batch,) = DataLoader(data, batch_size=4, num_workers=1)
    assert torch.equal(batch[0], alone)


def test_a_damaged_file_is_named_with_the_remedy(photographs: Path):
    path = photographs / "red" / "b.jpg"
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(DatasetError, match=r"b\.jpg.*Delete"):
        ImageFolder(photographs)[3]


def test_a_folder_without_images_says_what_to_give(tmp_path: Path):
    with pytest.raises(DatasetError, match=r"images\(\)"):
        ImageFolder(tmp_path)


def test_windows_of_text_predict_the_next_byte(tmp_path: Path):
    file = tmp_path / "alphabet.txt"
    file.write_bytes(b"abcdefghij" * 10)
    data = TextWindows(file, length=4)
    assert len(data) == 22  # 90 of 100 bytes are for training: 22 windows of 4, and one byte after
    inputs, targets = data[1]
    assert bytes(inputs.tolist()) == b"efgh"
    assert bytes(targets.tolist()) == b"fghi"
    assert inputs.dtype == torch.int64
    with pytest.raises(IndexError):
        data[22]


def test_validation_text_is_the_last_tenth(tmp_path: Path):
    file = tmp_path / "letters.txt"
    file.write_bytes(b"a" * 90 + b"z" * 10)
    assert set(TextWindows(file, length=3, part="val")[0][0].tolist()) == {ord("z")}
    assert set(torch.cat([x for x, _ in TextWindows(file, length=3)]).tolist()) == {ord("a")}  # type: ignore[attr-defined]


def test_a_text_that_is_absent_or_too_short_says_so(tmp_path: Path):
    with pytest.raises(DatasetError, match=r"text\(\)"):
        TextWindows(tmp_path / "absent.txt")
    (tmp_path / "short.txt").write_text("hello")
    with pytest.raises(DatasetError, match="too short"):
        TextWindows(tmp_path / "short.txt")


def test_digits_come_as_tensors_of_two_parts():
    image, label = digit_tensors()[0]
    assert image.shape == (1, 8, 8)
    assert label == 0  # the first digit of the file is a zero
    assert len(digit_tensors("val")) == 360
