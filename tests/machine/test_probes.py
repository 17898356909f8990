"""What each dtype costs here, and what may go wrong while asking: the child, its cache, its end."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from workbench.machine import (
    attention_back_ends,
    dtypes,
    known_probe,
    matmul_modes,
    probe,
    probing,
    trial,
)
from workbench.machine.dtypes import DTYPES, DtypeProbe
from workbench.machine.trial import grown

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache and a memory of this test alone."""
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(probing, "_MEMORY", {})
    return tmp_path / "cache"


def whole(**changes: Any) -> probing.Found:
    """A complete answer of a CPU with native bf16."""
    said = {"supported": True, "matmul_ratio": 1.0, "convolution_ratio": 1.0}
    found = {name: dict(said) for name in DTYPES}
    found["fp16"]["matmul_ratio"] = 64.0
    found |= changes
    return {
        "device": {"type": "cpu", "onednn": {"bf16": True, "fp16": False}},
        "dtypes": found,
        "attention": {"math": ["fp32"]},
        "modes": {"high": {"acts": False}, "medium": {"acts": True, "ratio": 0.4}},
        "reason": None,
        "whole": True,
    }


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Trials that would have been started; each gives a complete answer."""
    started: list[str] = []

    def run(device: str, time_limit_s: float) -> probing.Found:
        started.append(device)
        return whole()

    monkeypatch.setattr(probing, "run_trial", run)
    return started


def of(found: tuple[DtypeProbe, ...], dtype: str) -> DtypeProbe:
    return next(each for each in found if each.dtype == dtype)


def _too_busy(reason: str | None) -> bool:
    """Whether others left the trial no time: two seconds are all that it gets."""
    return reason is not None and reason.startswith("not measured")


def test_this_processor_is_really_asked_and_the_slow_type_costs_no_minutes():
    found = probe("cpu")
    assert tuple(each.dtype for each in found) == DTYPES
    assert of(found, "fp32").matmul_ratio == 1.0
    assert not of(found, "tf32").supported
    reason = of(found, "tf32").reason or ""
    assert "tensor cores" in reason or _too_busy(reason)
    low = {name: of(found, name) for name in ("bf16", "fp16")}
    for name, each in low.items():
        assert each.native == dtypes.native_dtypes()[name] or _too_busy(each.reason)
        if each.native is False and each.factor is not None:
            assert each.factor > 1.1, "converting to fp32 and back costs at least that"
    assert of(found, "fp32").native
    assert not torch.cuda.is_initialized()
    names = {each.name: each.possible for each in attention_back_ends("cpu")}
    # None where a busy machine left no time to try it.
    assert names["flash"] is not False
    assert names["math"] is not False
    assert names["efficient"] is not True
    assert names["cudnn"] is not True


def test_modes_of_fp32_products_tell_whether_they_act(counted: list[str]):
    high, medium = matmul_modes("cpu")
    assert (high.acts, high.ratio) == (False, None)
    assert (medium.acts, medium.ratio) == (True, 0.4)


def test_a_mode_that_changes_no_bit_does_not_act():
    found = trial.mode_tried(torch, "cpu", "highest", 0.01)
    assert found["acts"] is False
    assert torch.get_float32_matmul_precision() == "highest"


def test_answers_are_asked_for_once_and_kept_for_the_next_process(
    counted: list[str], monkeypatch: pytest.MonkeyPatch
):
    assert known_probe("cpu") is None
    assert counted == [], "asking what is known starts nothing"
    first = probe("cpu")
    monkeypatch.setattr(probing, "_MEMORY", {})  # as in a new process
    assert probe("cpu") == first == known_probe("cpu")
    assert counted == ["cpu"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"schema": "workbench.probe/2", "found": {"whole": true}}',
        '{"schema": "workbench.probe/0", "found": {}}',
        json.dumps(
            {
                "schema": "workbench.probe/2",
                "found": whole(fp16={"supported": True, "matmul_ratio": "64"}),
            }
        ),
        json.dumps(
            {
                "schema": "workbench.probe/2",
                "found": whole(fp16={"supported": True, "matmul_ratio": -1.0}),
            }
        ),
    ],
)
def test_a_damaged_cache_is_made_anew(
    counted: list[str], own_cache: Path, monkeypatch: pytest.MonkeyPatch, text: str
):
    probe("cpu")
    (kept,) = (own_cache / "machine").iterdir()
    kept.write_text(text)
    monkeypatch.setattr(probing, "_MEMORY", {})
    assert of(probe("cpu"), "fp16").matmul_ratio == 64.0
    assert counted == ["cpu", "cpu"]
    assert json.loads(kept.read_text())["found"]["whole"]


def test_another_torch_or_processor_is_asked_anew(
    counted: list[str], monkeypatch: pytest.MonkeyPatch
):
    probe("cpu")
    monkeypatch.setattr(probing, "package_version", lambda name: "9.9")
    probe("cpu")
    monkeypatch.setattr(probing, "cpu_model", lambda: "another")
    probe("cpu")
    assert counted == ["cpu"] * 3


def test_a_cache_that_cannot_be_written_does_not_matter(
    counted: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "file").write_text("in the way of the folder")
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "file"))
    assert of(probe("cpu"), "fp16").matmul_ratio == 64.0
    assert of(probe("cpu"), "fp16").matmul_ratio == 64.0
    assert counted == ["cpu"], "kept in memory"


def test_an_answer_with_holes_is_not_kept_for_later_processes(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(probing, "run_trial", lambda *_: {**whole(), "whole": False})
    probe("cpu")
    assert not (own_cache / "machine").exists()


def test_two_processes_at_once_leave_one_whole_cache(own_cache: Path):
    code = (
        "import sys; from workbench.machine import probing; "
        "found = {'whole': True, 'device': {}, 'attention': {}, 'modes': {}, 'reason': None, "
        "'dtypes': {d: {'supported': True} for d in probing.ORDER}}\n"
        "for _ in range(200): probing._keep('key', found)"
    )
    both = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [each.wait(timeout=120) for each in both] == [0, 0]
    assert [path.name for path in (own_cache / "machine").iterdir()] == ["key.json"]
    assert probing._remembered("key") is not None


class Clock:
    """Time that only calls take: so many seconds each, by the side of the matrices."""

    def __init__(self) -> None:
        self.now = 0.0

    def call(self, seconds: float) -> Any:
        def spend() -> None:
            self.now += seconds

        return spend


def test_sizes_grow_only_while_the_next_one_is_sure_to_be_cheap(monkeypatch: pytest.MonkeyPatch):
    """fp32 takes n³ ps, the type 100 times that: 1.7 ms at 256².

    Up to there eleven calls of each size take 21 of 150 ms. At 512² eleven calls of eight times
    1.7 ms are 148 ms, which is more than is left.
    """
    clock = Clock()
    for name in ("monotonic", "thread_time"):
        monkeypatch.setattr(f"workbench.machine.trial.time.{name}", lambda: clock.now)
    monkeypatch.setattr("workbench.machine.trial.LEAST_ROUND_S", 0.0)
    seen: list[int] = []

    def level(n: int) -> Any:
        def make() -> Any:
            seen.append(n)
            return clock.call(n**3 * 1e-12), clock.call(n**3 * 1e-10)

        return n, make

    ratio, size = grown(torch, "cpu", 0.15, [level(n) for n in (64, 128, 256, 512, 1024)])
    assert ratio == pytest.approx(100)
    assert size == seen[-1] == 256


def on_device(device: str, described: dict[str, Any]) -> dict[str, bool | None]:
    """Which types are native on a device that described itself so."""
    answers = dtypes._answers(device, {**whole(), "device": described})
    return {each.dtype: each.native for each in answers}


@pytest.mark.parametrize(
    ("device", "described", "native"),
    [
        ("cuda:0", {"name": "NVIDIA H100 80GB HBM3", "arch": "sm_90"}, {"tf32", "bf16", "fp8"}),
        ("cuda:0", {"name": "NVIDIA A100", "arch": "sm_80"}, {"tf32", "bf16"}),
        ("cuda:0", {"name": "Tesla V100", "arch": "sm_70"}, set()),
        ("cuda:0", {"name": "AMD Instinct MI250X", "arch": "gfx90a:sramecc+"}, {"bf16"}),
    ],
)
def test_a_devices_own_description_tells_what_is_native(
    device: str, described: dict[str, Any], native: set[str]
):
    found = on_device(device, described)
    assert {name for name, is_native in found.items() if is_native} == {"fp32", "fp16"} | native


def test_a_gtx_converts_fp16_and_an_unknown_device_tells_nothing():
    assert on_device("cuda:0", {"name": "GeForce GTX 1650", "arch": "sm_75"})["fp16"] is False
    assert on_device("cuda:0", {})["fp16"] is None
    xpu = on_device("xpu:0", {"has_fp16": True, "has_bfloat16_conversions": False})
    assert (xpu["fp16"], xpu["bf16"]) == (True, False)
    mps = on_device("mps", {"type": "mps"})
    assert (mps["fp16"], mps["bf16"], mps["fp8"]) == (True, None, False)


def test_asking_about_a_gpu_opens_none_here(counted: list[str], monkeypatch: pytest.MonkeyPatch):
    def touched(*_: object) -> None:
        raise AssertionError("looking must not initialise the device")

    for name in ("_lazy_init", "get_device_properties", "get_device_name", "current_device"):
        monkeypatch.setattr(torch.cuda, name, touched)
    assert of(probe("cuda:0"), "fp16").supported
    assert counted == ["cuda:0"]


class FakeCuda:
    """A torch of which the trial uses the description of one device."""

    float8_e4m3fn = float8_e4m3fnuz = ""

    def __init__(self, **properties: Any) -> None:
        self.cuda = SimpleNamespace(get_device_properties=lambda _: SimpleNamespace(**properties))

    def ones(self, *_: Any, device: str) -> torch.Tensor:
        return torch.ones(1)


@pytest.mark.parametrize(
    ("properties", "arch"),
    [
        ({"name": "NVIDIA H100", "major": 9, "minor": 0}, "sm_90"),
        ({"name": "MI300X", "major": 9, "minor": 4, "gcnArchName": "gfx942"}, "gfx942"),
        ({"name": "AMD Instinct MI210", "major": 9, "gcnArchName": "gfx90a"}, "gfx90a"),
    ],
)
def test_the_child_describes_its_device(properties: dict[str, Any], arch: str):
    found = trial.described(FakeCuda(**properties), "cuda:0")
    assert (found["name"], found["arch"]) == (properties["name"], arch)


@pytest.mark.parametrize(
    ("arch", "kind"), [("gfx942:sramecc+", "e4m3fnuz"), ("gfx950", "e4m3fn"), (None, "e4m3fn")]
)
def test_fp8_of_the_mi300_has_another_zero(arch: str | None, kind: str):
    fake = FakeCuda(name="a device", major=9, minor=0, gcnArchName=arch)
    fake.float8_e4m3fn, fake.float8_e4m3fnuz = "e4m3fn", "e4m3fnuz"
    assert trial.fp8_kind(fake, "cuda:0") == kind


def test_what_torch_says_it_cannot_do_is_an_answer(monkeypatch: pytest.MonkeyPatch):
    def products(*_: Any) -> Any:
        def make() -> Any:
            raise RuntimeError('"addmm_impl" not implemented for Half\nmore')

        return make

    monkeypatch.setattr(trial, "products", products)
    found = trial.tried(torch, "cpu", "fp16", 0.1)
    assert found == {"supported": False, "reason": '"addmm_impl" not implemented for Half'}


@pytest.mark.gpu
def test_a_real_gpu_is_asked_without_being_opened_here():
    code = (
        "import torch; from workbench.machine import probe; "
        "name = f'{torch.accelerator.current_accelerator().type}:0'; found = probe(name); "
        "assert not torch.cuda.is_initialized(); print([(p.dtype, p.matmul_ratio) for p in found])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=200, check=True
    )
    assert "fp16" in done.stdout
