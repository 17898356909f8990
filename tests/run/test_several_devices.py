"""One process with two devices: page, text, tables and charts tell of each."""

from pathlib import Path

import pytest

import workbench as wb
from tests.kineto import Kineto
from tests.run.test_open import gpu_trace
from workbench.cli.console import print_run
from workbench.run.run import Run
from workbench.run.verdict import verdict

US = 1_000


def two_devices() -> Kineto:
    """Three steps of 200 us; device 0 works 150 of each from 20 on, device 1 60 from 100 on."""
    made = Kineto(gpu=True)
    for number, at in enumerate((1000, 1200, 1400)):
        made.step(number, at, 200)
        for device, start, length in ((0, 20, 150), (1, 100, 60)):
            made.launched(
                f"gemm_of_{device}",
                call=(at + start - 10, 4),
                kernel=(at + start, length),
                correlation=2 * number + device + 1,
                device=device,
            )
            made.kernel(
                "Memcpy HtoD (Pinned -> Device)",
                at + start,
                10,
                correlation=2 * number + device + 1,
                device=device,
                stream=9,
                cat="gpu_memcpy",
                bytes=1000,
            )
    return made


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return wb.open(two_devices().write(tmp_path / "t.json"))


def test_every_device_has_its_own_window_and_breakdown(run: Run) -> None:
    """From the first kernel to the last end: 1020 to 1570, and 1100 to 1560."""
    rank = run.ranks[0]
    lengths = {device: time.range.length for device, time in rank.device_time.items()}
    assert lengths == {0: 550 * US, 1: 460 * US}
    for device in run.devices:
        parts = rank.breakdown(device)
        assert sum(ns or 0 for ns in parts.values()) == lengths[device]
    assert run.idle is not None
    idle = run.idle.groupby("device")["idle_ns"].sum()
    assert idle.tolist() == [550 * US - 450 * US, 460 * US - 180 * US]


def test_kernels_are_counted_in_the_window_of_their_device(tmp_path: Path) -> None:
    """Work of device 1 at 1050, before its first step's and inside the window of device 0."""
    made = two_devices()
    made.launched("before", call=(900, 4), kernel=(1050, 20), correlation=90, device=1)
    kernels = wb.open(made.write(tmp_path / "t.json")).kernels
    assert kernels is not None
    assert "before" not in kernels["name"].tolist()
    of_one = kernels[kernels["device"] == 1]
    assert of_one["share"].sum() == pytest.approx(1)


@pytest.mark.parametrize("name", ["kernels", "families", "copies"])
def test_a_chart_of_work_is_of_all_devices_or_of_the_one_that_is_named(run: Run, name: str) -> None:
    every, one = run.figure(name), run.figure(name, device=1)  # type: ignore[arg-type]
    assert every.table is not None
    assert one.table is not None
    assert len(every.table.rows) == 2 * len(one.table.rows)
    assert one.title.startswith("GPU 1: ")
    assert not every.title.startswith("GPU")


@pytest.mark.parametrize("name", ["breakdown", "idle", "waterfall", "step_parts", "queue"])
def test_a_chart_of_time_is_of_one_device_and_says_which(run: Run, name: str) -> None:
    assert "GPU 0" in run.figure(name).title  # type: ignore[arg-type]
    assert "GPU 1" in run.figure(name, device=1).title  # type: ignore[arg-type]


def test_the_verdict_says_which_device_it_is_about_and_shows_that_first(run: Run) -> None:
    """Device 1 idles 140 of 200 us, device 0 only 50."""
    assert verdict(run).startswith("GPU 1: ")
    text = repr(run.part("parts"))
    assert text.index("GPU 1") < text.index("GPU 0")


def test_one_device_needs_no_name(tmp_path: Path) -> None:
    """The loader is slow, whichever device waits."""
    run = wb.open(gpu_trace().write(tmp_path / "t.json"))
    assert run.figure("kernels", device=0).title == run.figure("kernels").title
    assert "GPU" not in verdict(run).split(".")[0]


def test_the_text_of_analyze_tells_of_both(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    print_run(run)
    said = capsys.readouterr().out
    for device in run.devices:
        assert f"Where the window of device {device} goes" in said
        row = next(line for line in said.splitlines() if line.startswith(f"gemm_of_{device}"))
        assert row.split()[1] == str(device)
