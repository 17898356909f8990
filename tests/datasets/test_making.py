"""What is in the sets that are made from installed packages?"""

import errno
import hashlib
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from workbench.datasets import cache, digits, images, text
from workbench.datasets.photographs import PHOTOGRAPHS, TRAIN_WIDTH
from workbench.errors import DatasetError, MissingExtraError

pytestmark = pytest.mark.slow


COUNT = 95
CLASSES = {photograph.label for photograph in PHOTOGRAPHS}


def small() -> Path:
    return images(COUNT, 32, progress=False)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("WORKBENCH_CACHE", str(tmp_path_factory.mktemp("corpus")))
        return text()


def digest(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def test_images_are_real_jpeg_files_in_class_folders_of_two_parts():
    folder = small()
    for part, share in (("train", 0.8), ("val", 0.2)):
        files = sorted((folder / part).glob("*/*.jpg"))
        assert {path.parent.name for path in files} == CLASSES
        assert len(files) == pytest.approx(share * COUNT, abs=5)
        with Image.open(files[0]) as image:
            assert (image.format, image.size, image.mode) == ("JPEG", (32, 32), "RGB")
    assert len(list(folder.rglob("*.jpg"))) == COUNT


def test_images_are_the_same_bytes_each_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    first = digest(small())
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "elsewhere"))
    assert digest(small()) == first


def test_images_are_photographs_not_flat_colours():
    flat = 0
    files = list(small().rglob("*.jpg"))
    for path in files:
        with Image.open(path) as image:
            flat += np.asarray(image).std() < 1
    assert flat <= 0.1 * len(files)  # a piece of black sky is real, too


def test_training_and_validation_share_no_pixel(monkeypatch: pytest.MonkeyPatch):
    # Photographs whose left part is red and whose right part is blue: no crop may hold both.
    border = round(100 * TRAIN_WIDTH)
    painted = Image.new("RGB", (100, 60), (255, 0, 0))
    painted.paste((0, 0, 255), (border, 0, 100, 60))
    monkeypatch.setattr(Image, "open", lambda _: painted)
    folder = small()
    monkeypatch.undo()
    for part, channel in (("train", 2), ("val", 0)):
        for path in folder.glob(f"{part}/*/*.jpg"):
            with Image.open(path) as image:
                assert np.asarray(image)[..., channel].max() < 10


def test_the_record_of_the_images_names_photographs_and_pillow():
    record = json.loads((small() / cache.RECORD).read_text())
    assert set(record["versions"]) == {"python", "pillow", "scikit-learn", "scikit-image"}
    assert len(record["sources"]) == len(PHOTOGRAPHS)
    assert all(len(source["sha256"]) == 64 for source in record["sources"])
    assert record["files"] == COUNT


@pytest.mark.parametrize(("count", "size"), [(10, 64), (3600, 4)])
def test_too_few_or_too_small_images_are_refused(count: int, size: int):
    with pytest.raises(DatasetError, match="at least"):
        images(count, size)


@pytest.mark.parametrize(
    ("missing", "called"),
    [("PIL", "pillow"), ("skimage", "scikit-image"), ("sklearn", "scikit-learn")],
)
def test_a_missing_package_names_the_extra_that_brings_it(
    monkeypatch: pytest.MonkeyPatch, missing: str, called: str
):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == missing else find(name)
    )
    with pytest.raises(MissingExtraError, match=rf"'{called}'.*torch-workbench\[data\]"):
        small()


def test_a_disk_that_fills_up_among_the_images_leaves_no_set(
    monkeypatch: pytest.MonkeyPatch, cache: Path
):
    write, written = Path.write_bytes, []

    def filling(self: Path, data: bytes) -> int:
        written.append(self)
        if len(written) > 40:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(self, data)

    monkeypatch.setattr(Path, "write_bytes", filling)
    with pytest.raises(DatasetError, match="disk is full"):
        small()
    assert [path for path in cache.iterdir() if path.is_dir()] == []


def test_the_text_is_english_prose_and_python_source(corpus: Path):
    prose = (corpus / "prose.txt").read_text(encoding="utf-8")
    source = (corpus / "source.txt").read_text(encoding="utf-8")
    assert "Beautiful is better than ugly." in prose
    assert "def namedtuple(" in source
    assert len(prose) > 500_000
    assert len(source) > 5_000_000
    # English: "the" is its most frequent word, some 5 % of all.
    words = prose.lower().split()
    assert 0.02 < words.count("the") / len(words) < 0.10


def test_the_text_holds_no_path_of_this_installation(corpus: Path):
    for name in ("prose.txt", "source.txt"):
        assert sys.base_prefix + "/bin" not in (corpus / name).read_text(encoding="utf-8")


def test_a_python_without_its_library_as_files_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    with pytest.raises(DatasetError, match="standard library"):
        text()


def test_the_digits_are_those_of_scikit_learn():
    from sklearn.datasets import load_digits

    found, known = digits(), load_digits()
    together = np.concatenate([found.train_images, found.val_images])
    assert np.array_equal(together.reshape(-1, 64) * 16, known.data)
    assert np.array_equal(np.concatenate([found.train_labels, found.val_labels]), known.target)
    assert len(found.val_labels) == pytest.approx(0.2 * len(known.target), abs=1)
    assert found.train_images.dtype == np.float32
    assert found.train_images.shape[1:] == (1, 8, 8)
    assert set(found.val_labels) == set(range(10))
