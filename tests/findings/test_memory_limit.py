"""WB501 and WB502 of memory: growth, a full device, and fragments; and when to stay silent."""

from dataclasses import replace
from pathlib import Path

import pytest

import workbench as wb
from tests.analysis.snapshots.made import MB, Made, frames
from workbench.analysis.memory.pressure import MemoryPressure
from workbench.findings import Facts, diagnose
from workbench.findings.memory_limit import memory_limit

GB = 10**9
LEAK = MemoryPressure(
    device="GPU 0",
    peak_bytes=10 * GB,
    limit_bytes=40 * GB,
    steps=20,
    bytes_per_step=0.1 * GB,
    worst_bytes_per_step=0.1 * GB,
    median_bytes_per_step=0.1 * GB,
    chance=1e-9,
    grows=True,
    largest="train.py(12): log",
    largest_share=0.8,
)
STEADY = replace(LEAK, grows=False, bytes_per_step=0.0, largest="")


def test_memory_that_grows_tells_how_much_where_and_how_long_it_lasts() -> None:
    """30 GB are left, 0.1 GB a step: 300 more steps."""
    found = memory_limit(Facts(memory_pressure=LEAK))
    assert found is not None
    assert (found.code, found.severity) == ("WB501", "critical")
    assert "train.py(12): log" in found.title
    assert "After 300 more steps" in found.title


@pytest.mark.parametrize(
    ("share", "said"), [(0.5, "most of it by train.py"), (0.4, "40 % of it by train.py")]
)
def test_most_is_only_said_of_half_or_more(share: float, said: str) -> None:
    found = memory_limit(Facts(memory_pressure=replace(LEAK, largest_share=share)))
    assert found is not None
    assert said in found.title.replace("\u2009", " ").replace("\u00a0", " ")


def test_few_steps_are_a_warning() -> None:
    found = memory_limit(Facts(memory_pressure=replace(LEAK, steps=6)))
    assert found is not None
    assert found.severity == "warning"


def test_a_full_device_is_told() -> None:
    found = memory_limit(Facts(memory_pressure=replace(STEADY, peak_bytes=38 * GB)))
    assert found is not None
    assert "95 % full" in found.title.replace("\u2009", " ")


@pytest.mark.parametrize(
    "quiet",
    [
        None,
        STEADY,
        replace(STEADY, peak_bytes=36 * GB),
        replace(STEADY, peak_bytes=100 * GB, limit_bytes=None),
        replace(LEAK, bytes_per_step=1000.0),
    ],
)
def test_steady_half_full_or_harmless_memory_is_silent(quiet: MemoryPressure | None) -> None:
    assert memory_limit(Facts(memory_pressure=quiet)) is None
    assert not diagnose(Facts(memory_pressure=quiet))


def snapshot(folder: Path, *, asked: int) -> Path:
    """A segment of 20 MB of which a log holds one; then so much more is asked for."""
    made = Made()
    log = frames(("run/train.py", 12, "log"))
    made.act("segment_alloc", 4096, 20 * MB, 1)
    made.alloc(4096, MB, 2, log)
    made.segment(4096, 20 * MB, (MB, True, log), (19 * MB, False, None))
    made.act("oom", 0, asked, 90, device_free=MB)
    return made.write(folder / "snapshot.pickle")


def test_fragments_are_the_cause_of_a_failure_that_they_could_have_served(tmp_path: Path) -> None:
    found = wb.open(snapshot(tmp_path, asked=10 * MB)).findings
    assert [each.code for each in found] == ["WB502"]
    assert found[0].evidence["held_by"] == "run/train.py(12): log"


def test_a_request_larger_than_all_of_it_is_no_matter_of_fragments(tmp_path: Path) -> None:
    assert not wb.open(snapshot(tmp_path, asked=30 * MB)).findings
