"""What can be switched here? The table must say what applying the setting would say."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

from tests.workload.zoo import ZOO
from workbench.errors import SettingError, WorkloadError
from workbench.machine import AttentionBackEnd, DtypeProbe, MatmulMode
from workbench.settings import Settings
from workbench.workload import Workload, prepare
from workbench.workload.capability import Offer, offers
from workbench.workload.trying import Trial
from workbench.workload.values import blocks, candidates, companions


def probed(dtype: str, factor: float | None, *, supported: bool = True) -> DtypeProbe:
    return DtypeProbe(
        dtype=dtype,
        supported=supported,
        native=None,
        matmul_ratio=factor,
        convolution_ratio=None,
        reason=None if supported else "no such product",
    )


@pytest.fixture(autouse=True)
def measured(monkeypatch: pytest.MonkeyPatch) -> dict[str, DtypeProbe]:
    """A processor with fast bf16 and imitated fp16, so that no test waits for a child."""
    found = {
        "fp32": probed("fp32", 1.0),
        "tf32": probed("tf32", None, supported=False),
        "bf16": probed("bf16", 0.5),
        "fp16": probed("fp16", 64.0),
        "fp8": probed("fp8", 2.5),
    }

    def probe(device: str) -> tuple[DtypeProbe, ...]:
        return tuple(found.values())

    def back_ends(device: str) -> tuple[AttentionBackEnd, ...]:
        return ()

    monkeypatch.setattr("workbench.workload.probed.probe", probe)
    monkeypatch.setattr("workbench.workload.precision.probe", probe)

    def modes(device: str) -> tuple[MatmulMode, ...]:
        return (
            MatmulMode(mode="high", acts=False, ratio=1.0),
            MatmulMode(mode="medium", acts=True, ratio=0.4),
        )

    monkeypatch.setattr("workbench.workload.trying.attention_back_ends", back_ends)
    monkeypatch.setattr("workbench.workload.capability.matmul_modes", modes)
    monkeypatch.setattr("workbench.workload.precision.native", _native)
    return found


def _native(dtype: torch.dtype, device: torch.device) -> bool:
    return dtype is not torch.float16


def of(found: tuple[Offer, ...], field: str, value: Any) -> Offer:
    return next(each for each in found if each.field == field and value in each.values)


def test_every_setting_has_its_line() -> None:
    found = offers(ZOO["cnn"]())
    assert {each.field for each in found} == {each.name for each in fields(Settings)}
    for each in found:
        assert (each.reason is not None) or each.state == "possible"


def test_fp16_on_this_kind_of_processor_is_refused_with_its_factor() -> None:
    offer = of(offers(ZOO["cnn"]()), "precision", "fp16")
    assert offer.state == "refused"
    assert offer.factor == 64.0
    assert "64" in (offer.reason or "")
    assert "no fp16 instructions" in (offer.reason or "")
    scale = of(offers(ZOO["cnn"]()), "loss_scale", 1024.0)
    assert scale.state == "refused"


def test_bf16_that_is_fast_is_possible_and_one_that_is_slow_harmful(
    measured: dict[str, DtypeProbe],
) -> None:
    assert of(offers(ZOO["cnn"]()), "precision", "bf16").state == "possible"
    measured["bf16"] = probed("bf16", 49.0)
    offer = of(offers(ZOO["cnn"]()), "precision", "bf16")
    assert (offer.state, offer.factor) == ("harmful", 49.0)
    assert offer.reason == "a matrix product takes 49 × as long as in fp32 (measured)"


def test_a_mode_of_fp32_products_is_told_by_what_it_does() -> None:
    found = offers(ZOO["cnn"](), None)
    assert of(found, "matmul_precision", "high").reason == "changes nothing on this device"
    assert of(found, "matmul_precision", "medium").factor == 0.4


def test_more_workers_than_processors_do_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.workload.values.usable_cpus", lambda: 4)
    monkeypatch.setattr("workbench.workload.trying.usable_cpus", lambda: 4)
    found = offers(ZOO["cnn"]())
    assert of(found, "workers", 4).state == "possible"
    assert of(found, "workers", 5).state == "harmful"
    assert "4 processors" in (of(found, "workers", 5).reason or "")


def test_little_shared_memory_is_said_beside_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    from workbench.machine import SharedMemory

    small = SharedMemory(size=64_000_000, free=64_000_000)
    monkeypatch.setattr("workbench.workload.trying.shared_memory", lambda: small)
    found = offers(ZOO["cnn"]())
    assert "64.0 MB are free" in (of(found, "workers", 1).reason or "")
    assert of(found, "workers", 0).reason is None


def test_given_settings_are_judged_by_their_very_values() -> None:
    found = offers(ZOO["cnn"](), Settings(precision="bf16", batch_size=7))
    assert [(each.field, each.values) for each in found] == [
        ("precision", ("bf16",)),
        ("batch_size", (7,)),
    ]


def test_blocks_that_repeat_are_offered_for_checkpointing() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16)
    model = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    assert blocks(model)[0] == ("TransformerEncoderLayer",)
    assert blocks(nn.Sequential(nn.Linear(2, 2), nn.ReLU())) == ()


def test_a_compile_tool_chain_that_lacks_something_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("workbench.workload.trying.compile_lacks", lambda kind: "a C++ compiler")
    offer = of(offers(ZOO["cnn"]()), "compile", "default")
    assert offer.state == "refused"
    assert "C++ compiler" in (offer.reason or "")
    assert of(offers(ZOO["cnn"]()), "compile", False).state == "possible"


def test_data_from_a_function_is_not_asked_for() -> None:
    def data() -> Iterator[Any]:
        raise AssertionError("offering must not load data")

    model = nn.Linear(2, 2)
    work = Workload(model, data, loss=lambda output: output.sum())
    offer = of(offers(work), "workers", 1)
    assert offer.state == "possible"
    assert "shows in use" in (offer.reason or "")


def test_offering_changes_nothing_and_draws_nothing() -> None:
    work = ZOO["cnn"]()
    state = {name: value.clone() for name, value in work.model.state_dict().items()}
    attributes = dict(vars(work.data)) if isinstance(work.data, DataLoader) else {}
    random = torch.get_rng_state()
    threads = torch.get_num_threads()
    offers(work)
    for name, value in work.model.state_dict().items():
        assert torch.equal(value, state[name])
    assert torch.equal(random, torch.get_rng_state())
    assert torch.get_num_threads() == threads
    if isinstance(work.data, DataLoader):
        assert vars(work.data) == attributes


_NOT_TRIED = ("interop_threads", "device")
"""One cannot be taken back, the other moves the model."""


def _adam() -> Workload:
    model = nn.Linear(4, 2)
    data = TensorDataset(torch.randn(32, 4), torch.randint(0, 2, (32,)))
    return Workload(
        model,
        DataLoader(data, 8),
        loss=functional.cross_entropy,
        optimizer=torch.optim.Adam(model.parameters()),
    )


@pytest.mark.parametrize("name", ["cnn", "rnn", "inference", "custom_loader", "adam"])
def test_what_is_refused_is_what_applying_refuses(name: str) -> None:
    """Every value of every field is applied by the real preparation, and leaves again."""
    make = _adam if name == "adam" else ZOO[name]
    work = make()
    trial = Trial(work)
    asked = candidates(work, trial)
    found = offers(work)
    wrong = []
    for field, values in asked.items():
        for value in values:
            if field in _NOT_TRIED:
                continue
            settings = Settings(**(companions(field, value, trial) | {field: value}))
            try:
                with prepare(work, settings):
                    applied = None
            except (SettingError, WorkloadError) as error:
                applied = str(error)
            offer = of(found, field, value)
            if (offer.state == "refused") != (applied is not None):
                wrong.append((field, value, offer.state, offer.reason, applied))
    assert wrong == []
