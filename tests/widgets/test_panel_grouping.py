"""Every switch stands in one group, with what it can do here."""

from dataclasses import fields

import pytest
import torch

import workbench as wb
from workbench.session import Session, session
from workbench.settings import Settings
from workbench.widgets.panel.grouping import GROUPS, grouped, presets
from workbench.workload.capability import Offer


def row(told: dict, name: str) -> dict:
    rows = [one for group in told["groups"] for one in group["rows"]]
    return next(one for one in rows if one["name"] == name)


def test_every_setting_stands_in_exactly_one_group():
    placed = [name for group in GROUPS for name in group.fields]

    assert sorted(placed) == sorted(field.name for field in fields(Settings))
    assert [group.name for group in GROUPS] == [
        *("Precision", "Compile and layout", "Batch and accumulation", "Loader"),
        *("Parallelism", "Optimizer"),
    ]


def test_parallelism_says_what_becomes_of_the_training():
    told = grouped((), {}, 4)
    notes = {group["name"]: group["note"] for group in told["groups"]}

    assert "go on from the next step with weights, optimizer" in notes["Parallelism"]


def test_modes_that_need_processes_can_be_chosen(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(session, "offers", lambda _work: ())  # of the machine: takes seconds
    model = torch.nn.Linear(2, 2)
    work = wb.Workload(
        model,
        [(torch.ones(2), torch.ones(2))],
        loss=torch.nn.functional.mse_loss,
        optimizer=torch.optim.SGD(model.parameters()),
    )
    values = row(grouped(Session(work).offers(), {}, 4), "parallel")["values"]
    assert {values[name]["state"] for name in ("ddp", "fsdp", "pp")} == {"possible"}

    own = wb.Workload(model, [torch.ones(2)], step=lambda _model, _batch: None)
    values = row(grouped(Session(own).offers(), {}, 4), "parallel")["values"]
    assert values["ddp"]["state"] == "possible"
    assert "its schedule runs forward and backward itself" in values["pp"]["reason"]


def test_a_switch_that_nothing_can_act_on_says_why():
    offers = (
        Offer(field="pin_memory", values=(True,), state="refused", reason="no accelerator"),
        Offer(field="compile", values=(True,), state="harmful", reason="slower here"),
        Offer(field="compile", values=("max-autotune",), state="refused", reason="no compiler"),
    )
    told = grouped(offers, {"pin_memory": False, "workers": 2}, 4)

    assert row(told, "pin_memory")["refused"] == "no accelerator"
    assert row(told, "pin_memory")["yours"] == "off"
    assert row(told, "workers")["yours"] == "2"
    compiled = row(told, "compile")
    assert compiled["refused"] is None
    assert compiled["values"]["default"] == {"state": "harmful", "reason": "slower here"}
    assert compiled["values"]["max-autotune"]["state"] == "refused"


def test_while_nobody_knows_what_is_possible_every_switch_is_there():
    told = grouped(None, {}, 4)

    assert not told["ready"]
    assert row(told, "workers")["refused"] is None


def test_presets_are_valid_settings():
    for cpus in (1, 2, 64):
        for _, purpose, settings in presets(cpus):
            assert settings.changes()
            assert purpose


def test_a_preset_leaves_out_what_cannot_act_and_what_hangs_on_it():
    offers = (
        Offer(field="compile", values=(True,), state="refused", reason="no compiler"),
        Offer(field="workers", values=(1, 2, 3, 4), state="refused", reason="a callable"),
    )
    told = {one["name"]: one for one in grouped(offers, {}, 4)["presets"]}

    assert "compile" not in told["Fewer launches"]["values"]
    assert told["Fewer launches"]["values"]["set_to_none"] is True
    assert told["Feed the loader"]["refused"] == "a callable"
