"""Every finding that a switch answers carries it: valid, possible here and not in force yet."""

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import workbench.findings
from tests.findings.facts import MS, found, stages, waiting
from workbench.analysis.compilations import Compilations
from workbench.analysis.optimizer_launches import OptimizerLaunches
from workbench.analysis.shapes_seen import ShapesSeen
from workbench.findings import diagnose
from workbench.findings.finding import Facts
from workbench.findings.switching import fewer_launches
from workbench.findings.torch_calls import torch_calls
from workbench.settings import Settings

ALL = {"optimizer": ["fused", "foreach"], "batched_fetch": True, "compile": True}


def plain_optimizer(**effective: Any) -> Facts:
    """300 operators on single tensors take 4 of 10 ms of each step on the CPU."""
    own = OptimizerLaunches(
        name="AdamW.step",
        steps=20,
        single=300 * 20,
        batched=0,
        host_ns=20 * 4 * MS,
        device_ns=None,
        launches=None,
        tensors=75,
    )
    return Facts(
        optimizer=own,
        trace_steps=20,
        trace_window_ns=20 * 10 * MS,
        step_ns=(10 * MS,) * 20,
        effective=effective,
    )


@pytest.mark.parametrize(
    ("effective", "setting"),
    [
        ({}, {"optimizer": "fused"}),
        ({"optimizer": "single", "can": ALL}, {"optimizer": "fused"}),
        ({"can": {"optimizer": ["foreach"]}}, {"optimizer": "foreach"}),
        ({"can": {"optimizer": []}}, None),
        ({"optimizer": "fused", "can": ALL}, None),
    ],
    ids=["trace alone", "possible", "no fused form", "a step of its own", "in force"],
)
def test_wb205_names_the_loop_that_the_optimizer_has(
    effective: dict[str, Any], setting: dict[str, Any] | None
) -> None:
    finding = found(plain_optimizer(**effective), "WB205")
    assert finding is not None
    assert finding.setting == setting


def test_wb205_an_optimizer_of_nobody_knows_which_kind_gets_no_switch() -> None:
    facts = plain_optimizer()
    assert facts.optimizer is not None
    facts = replace(facts, optimizer=replace(facts.optimizer, name="Mine.step"))
    finding = found(facts, "WB205")
    assert finding is not None
    assert finding.setting is None
    assert "torch._foreach_*" in finding.advice


def compiling(**effective: Any) -> Facts:
    """Compiled in 5 of 20 steps."""
    late = Compilations(steps=20, steps_with=5, count=5, ns=5 * 30 * MS)
    return Facts(
        compilations=late,
        trace_steps=20,
        trace_window_ns=20 * 10 * MS,
        effective=effective,
        compilation={"graphs": 6, "recompiles": 5, "graph_breaks": 0, "limit_reached": 0},
    )


@pytest.mark.parametrize(
    ("effective", "setting"),
    [
        ({"compile": True, "can": ALL}, {"compile": True, "compile_dynamic": True}),
        ({"compile": True, "can": {"compile": False}}, None),
        ({"compile": True, "compile_dynamic": True, "can": ALL}, None),
        ({}, None),
    ],
    ids=["by a switch", "by the user", "dynamic already", "trace alone"],
)
def test_wb207_compiles_for_changing_sizes_where_a_switch_compiled(
    effective: dict[str, Any], setting: dict[str, Any] | None
) -> None:
    finding = found(compiling(**effective), "WB207")
    assert finding is not None
    assert finding.setting == setting
    assert "dynamic=True" in finding.advice


def searching(**effective: Any) -> Facts:
    """10 of 20 steps see a new shape, and take 10 times as long as later ones of it."""
    seen = ShapesSeen(
        steps=20,
        new_steps=10,
        pairs=10,
        slow_pairs=10,
        ratio=10.0,
        slow_steps=10,
        slow_new_steps=10,
        excess_ns=10 * 90 * MS,
        usual_ns=10.0 * MS,
    )
    return Facts(shapes_seen=seen, effective=effective)


@pytest.mark.parametrize(
    ("effective", "setting"),
    [
        ({"cudnn_benchmark": True}, {"cudnn_benchmark": False}),
        ({"compile": "default", "can": ALL}, {"compile": "default", "compile_dynamic": True}),
        ({"cudnn_benchmark": False, "compile": False, "can": ALL}, None),
        ({}, None),
    ],
    ids=["search is on", "compiled", "neither", "trace alone"],
)
def test_wb208_ends_the_search_that_is_on(
    effective: dict[str, Any], setting: dict[str, Any] | None
) -> None:
    finding = found(searching(**effective), "WB208")
    assert finding is not None
    assert finding.setting == setting


ROWS: dict[str, Any] = {
    "samples_ns": 79 * MS,
    "collate_ns": 1 * MS,
    "fetch_ns": 80 * MS,
    "fetch_cpu_ns": 79 * MS,
    "batch_ns": 8.0 * MS,
    "samples": 10 * 256,
}


@pytest.mark.parametrize(
    ("possible", "setting"),
    [(True, {"batched_fetch": True}), (False, None), (None, None)],
    ids=["possible", "impossible", "not known"],
)
def test_rows_are_fetched_at_once_where_the_data_set_can(
    possible: bool | None, setting: dict[str, Any] | None
) -> None:
    """Rows at 30 µs each are 8 ms a batch; the step of 10 ms waits for it in its own process."""
    facts = waiting(
        10,
        8,
        effective={"workers": 0, "samples_per_step": 256, "can": {"batched_fetch": possible}},
        loader_stages=stages(**ROWS),
    )
    for code in ("WB101", "WB102"):
        finding = found(facts, code)
        assert finding is not None, code
        assert finding.setting == setting, code


FIXED = ShapesSeen(
    steps=20,
    new_steps=0,
    pairs=0,
    slow_pairs=0,
    ratio=None,
    slow_steps=0,
    slow_new_steps=0,
    excess_ns=0,
    usual_ns=None,
)


@pytest.mark.parametrize(
    ("effective", "shapes", "setting"),
    [
        ({}, FIXED, None),
        ({"compile": False, "can": ALL, "device": "cpu"}, None, {"compile": True}),
        ({"compile": False, "can": {"compile": False}, "device": "cpu"}, FIXED, None),
        (
            {"compile": False, "can": {"compile": False}, "device": "cuda:0"},
            FIXED,
            {"cuda_graphs": True},
        ),
        (
            {"compile": True, "can": ALL, "device": "cuda:0"},
            FIXED,
            {"compile": "reduce-overhead"},
        ),
        ({"compile": True, "can": ALL, "device": "cuda:0"}, replace(FIXED, new_steps=9), None),
        ({"compile": True, "can": {"compile": False}, "device": "cuda:0"}, FIXED, None),
    ],
    ids=[
        "nobody knows whether it is compiled",
        "not compiled",
        "no compiler on the CPU",
        "no compiler on a device",
        "compiled, fixed shapes",
        "compiled, changing shapes",
        "compiled by the user",
    ],
)
def test_what_launches_less_follows_from_what_is_in_force(
    effective: dict[str, Any], shapes: ShapesSeen | None, setting: dict[str, Any] | None
) -> None:
    assert fewer_launches(Facts(effective=effective, shapes_seen=shapes)) == setting


def every_finding() -> list[Any]:
    made = [plain_optimizer(can=ALL), plain_optimizer(), compiling(compile=True, can=ALL)]
    made += [searching(cudnn_benchmark=True), searching(compile="default", can=ALL)]
    made += [waiting(step, wait) for step, wait in ((100, 90), (100, 20))]
    made += [
        waiting(
            100,
            80,
            loader_stages=stages(),
            effective={"workers": workers, "samples_per_step": 8, "can": ALL},
        )
        for workers in (0, 1, 2, 16)
    ]
    rows = {"workers": 0, "samples_per_step": 256, "can": ALL}
    made.append(waiting(10, 8, effective=rows, loader_stages=stages(**ROWS)))
    probe = {"dtype": "fp16", "supported": True, "native": False, "matmul_ratio": 60.0}
    skipped = {"steps": 50, "skipped_at": [0, 1, 2], "scales": [[0, 65536.0], [3, 8192.0]]}
    made.append(
        Facts(
            effective={"precision": "fp16"},
            dtypes=(probe,),
            loss_scale=skipped,
            step_ns=(10 * MS,) * 30,
        )
    )
    return [finding for facts in made for finding in diagnose(facts)]


def test_every_setting_is_one_that_the_switches_take_and_that_torch_has_words_for() -> None:
    settings = [finding.setting for finding in every_finding() if finding.setting]
    assert len({tuple(setting) for setting in settings}) >= 7
    for setting in settings:
        assert Settings.from_json(dict(setting)).changes()
        assert torch_calls(setting) is not None, setting


def test_no_rule_names_a_field_that_no_switch_has() -> None:
    """Whatever a rule writes as ``setting=`` is a field; also in rules that need real loops."""
    fields = set(Settings.__dataclass_fields__)
    folder, seen = Path(workbench.findings.__file__).parent, set[str]()
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.keyword) and node.arg == "setting":
                dicts = [each for each in ast.walk(node.value) if isinstance(each, ast.Dict)]
                seen |= {key.value for each in dicts for key in each.keys if key is not None}  # type: ignore[attr-defined]
    assert seen
    assert seen <= fields
