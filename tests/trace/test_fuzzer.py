"""The fuzzer of ``make soak`` itself: it changes files, and it notices each kind of defect."""

import gzip
import re
import subprocess
import sys
import time
import zlib
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.soak import fuzz
from tests.soak.mutation import LARGEST, mutate
from tests.trace.test_fuzz import seeds
from workbench import trace
from workbench.trace.table import Trace


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_changes_are_repeatable_and_small() -> None:
    seed = seeds()[0]
    changed = [mutate(seed, Random(number)) for number in range(200)]

    assert changed == [mutate(seed, Random(number)) for number in range(200)]
    assert sum(data != seed for data in changed) > 150
    assert max(map(len, changed)) <= LARGEST


def test_what_is_inside_a_compressed_file_is_changed() -> None:
    packed = gzip.compress(seeds()[0], mtime=0)
    inside = set()
    for number in range(40):
        try:
            inside.add(gzip.decompress(mutate(packed, Random(number))))
        except (OSError, EOFError, zlib.error):
            continue  # the compression itself was damaged

    assert len(inside) > 10


def test_any_other_error_is_a_defect_and_the_file_is_kept(
    in_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(data: bytes, **_: Any) -> None:
        raise KeyError(data)

    monkeypatch.setattr(trace, "read", broken)

    with pytest.raises(KeyError) as raised:
        fuzz.unguided(60, Random(0))
    kept = list((in_folder / "test-results/fuzz").iterdir())
    assert [path.read_bytes() for path in kept] == [raised.value.args[0]]


def test_a_file_that_takes_too_much_memory_is_a_defect() -> None:
    """In a process of its own, as the fuzzer is: another one's memory may shrink meanwhile."""
    lines = (
        "import numpy as np",
        "from tests.soak import fuzz",
        "from tests.trace.test_fuzz import seeds",
        "from workbench import trace",
        "read = trace.read",
        "fuzz.MEMORY_PER_FILE = 32 << 20",
        "trace.read = lambda data, **_: np.ones(64 << 20, np.uint8).all() and read(data)",
        "fuzz.check(seeds()[0])",
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", "\n".join(lines)]
    ended = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert re.search(r"TooMuchMemoryError: \d+ MiB", ended.stderr), ended.stderr


def test_a_file_that_takes_too_much_processor_time_is_a_defect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def slow(data: bytes, **_: Any) -> Trace:
        begun = time.process_time()
        while time.process_time() - begun < 0.1:
            pass
        return read(data)

    read = trace.read
    monkeypatch.setattr(fuzz, "SECONDS_PER_FILE", 0.05)
    monkeypatch.setattr(trace, "read", slow)

    with pytest.raises(fuzz.TooSlowError, match="bytes"):
        fuzz.check(seeds()[0])


def test_sound_and_broken_files_pass(in_folder: Path) -> None:
    assert fuzz.unguided(1, Random(1)) > 0
    assert not (in_folder / "test-results").exists()
