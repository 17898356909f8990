"""One more step tells what its operators are asked: forward, backward, by module; nothing stays."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.optim import optimizer as optimizers

import workbench as wb
from tests.profiling.loops import loader, workload
from workbench.profiling import cost_step
from workbench.recording.cost_modules import ModulePaths
from workbench.recording.costs import CostMode, TooLongError

pytestmark = pytest.mark.slow


def record_of(run: wb.Run) -> Any:
    assert run.record is not None
    return run.record


def calls_of(run: wb.Run) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = record_of(run).costs
    return found


def noted(step: Any, model: nn.Module) -> tuple[CostMode, ModulePaths, list[str]]:
    paths = ModulePaths(model)
    mode = CostMode(paths, 60)
    with paths, mode:
        step()
    return mode, paths, list(paths.paths)


def test_a_profile_knows_what_a_step_computes_and_for_which_module() -> None:
    run = wb.profile(workload(), steps=2)
    told = record_of(run).cost_step
    # A batch of 4, 4 → 2: forward, and backward for the weight alone; the data ask for no gradient.
    assert told["flops"] == 2 * (2 * 4 * 4 * 2)
    products = {call["name"]: call for call in calls_of(run) if call.get("kind") == "gemm"}
    assert set(products) == {"aten::addmm", "aten::mm"}
    assert products["aten::addmm"]["key"] == "[[2],[4,4],[4,2],[],[]]"
    assert products["aten::addmm"]["flops"] == 64
    assert products["aten::addmm"]["bytes"] == 4 * (2 + 16 + 8 + 8)
    for call, phase in ((products["aten::addmm"], "f"), (products["aten::mm"], "b")):
        _, told_phase, module = call["at"].partition(phase)
        assert told_phase == phase
        assert told["modules"][int(module)] == "Linear"
    assert told["seconds"] > 0
    assert sum(call["count"] for call in calls_of(run)) == told["calls"]


def test_the_shapes_are_those_of_the_trace() -> None:
    run = wb.profile(workload(), steps=2)
    table = run.costs
    assert table is not None
    assert run.module_costs is not None
    assert run.module_costs.attrs["source"] == "the hooks of one more step"
    traced = set(zip(table["name"], table["shapes"], strict=True))
    heavy = {(call["name"], call["key"]) for call in calls_of(run) if call.get("flops")}
    assert heavy
    assert heavy <= traced


def test_a_kept_training_has_no_trace_of_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    work = wb.Workload(model, loader(8), loss=functional.cross_entropy, optimizer=optimizer)

    def state() -> list[Any]:
        held: list[Any] = [*model.state_dict().values(), torch.get_rng_state()]
        held += [each.grad for each in model.parameters()]
        held += [value for each in model.parameters() for value in optimizer.state[each].values()]
        return [each.clone() if each is not None else None for each in held]

    around: list[list[Any]] = []
    real = cost_step._run

    def watched(**given: Any) -> Any:
        around.append(state())
        try:
            return real(**given)
        finally:
            around.append(state())

    monkeypatch.setattr(cost_step, "_run", watched)
    run = wb.profile(work, steps=2, keep_training=True)
    assert record_of(run).cost_step["flops"] > 0
    before, after = around
    assert len(before) == len(after) > 10
    assert all(a is b is None or torch.equal(a, b) for a, b in zip(before, after, strict=True))
    assert not torch.nn.modules.module._global_forward_pre_hooks
    assert not torch.nn.modules.module._global_forward_hooks
    assert not optimizers._global_optimizer_pre_hooks


def test_an_error_in_the_step_keeps_the_run_and_is_told() -> None:
    from torch.utils._python_dispatch import _get_current_dispatch_mode

    def step(model: nn.Module, batch: Any) -> None:
        if _get_current_dispatch_mode() is not None:
            raise ValueError("not with a mode")
        model(batch[0]).sum().backward()

    run = wb.profile(workload(step=step), steps=2)
    assert record_of(run).costs is None
    assert "ValueError: not with a mode" in record_of(run).cost_step["reason"]
    assert "not with a mode" in run.summary.not_measured["module_costs"]
    assert run.costs is not None, "the trace has its shapes all the same"


def test_a_call_that_cannot_be_noted_ends_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("odd")

    monkeypatch.setattr(CostMode, "_note", broken)
    run = wb.profile(workload(), steps=2)
    assert record_of(run).costs is None
    assert "RuntimeError: odd" in record_of(run).cost_step["reason"]


def test_a_step_without_shapes_is_not_asked_for() -> None:
    run = wb.profile(workload(), steps=2, record=wb.Record(shapes=False))
    assert record_of(run).cost_step is None
    assert "shapes" in run.summary.not_measured["module_costs"]


@pytest.mark.parametrize(
    ("effective", "left_s", "said"),
    [
        ({"compile": True}, None, "compiled"),
        ({"cuda_graphs": True}, None, "CUDA graph"),
        ({}, 10.0, "time_limit_s"),
    ],
)
def test_why_there_is_no_such_step(effective: dict[str, Any], left_s: float, said: str) -> None:
    class Prepared:
        pass

    prepared: Any = Prepared()
    prepared.effective = effective
    assert said in (cost_step._refusal(prepared, [object()], 5.0, left_s) or "")


def test_a_step_that_takes_too_long_is_broken_off() -> None:
    model = nn.Linear(4, 4)
    with pytest.raises(TooLongError), CostMode(ModulePaths(model), -1.0):
        model(torch.ones(2, 4))


def test_a_checkpoint_is_in_the_backward_pass_of_its_module() -> None:
    from torch.utils.checkpoint import checkpoint

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(nn.Linear(4, 4), nn.Tanh())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            made: torch.Tensor = checkpoint(self.inner, x, use_reentrant=False)
            return made

    model = Block()
    x = torch.ones(2, 4, requires_grad=True)
    mode, _, names = noted(lambda: model(x).sum().backward(), model)
    forward = [each for each in mode.noted.values() if each.name == "aten::addmm"]
    assert [len(each.at) for each in forward] == [2]
    phases = [place.lstrip("0123456789") for place in forward[0].at]
    number = names.index("Block.inner.0")
    assert phases == [f"f{number}", f"b{number}"]


def test_odd_tensors_are_marked_and_never_counted() -> None:
    from workbench.analysis.costs.formulas import cost_of_noted

    sparse = torch.eye(3).to_sparse()
    whole = torch.arange(6).reshape(2, 3)
    complex_ = torch.ones(2, 2, dtype=torch.complex64)

    def step() -> None:
        torch.sparse.mm(sparse, torch.ones(3, 2))
        whole @ whole.T
        complex_ @ complex_

    mode, *_ = noted(step, nn.Identity())
    products = [each.to_json() for each in mode.noted.values() if each.name.endswith("mm")]
    assert len(products) >= 3
    told = {cost_of_noted(each) for each in products}
    assert {"complex numbers", "integer arithmetic"} <= {str(each) for each in told}
    assert all(isinstance(each, str) for each in told)


def test_an_operator_of_ones_own_is_counted_once_registered() -> None:
    from workbench.analysis.costs.cost import Call, Cost
    from workbench.analysis.costs.formulas import cost_of_noted, register_cost

    @torch.library.custom_op("workbench_test::scan", mutates_args=())
    def scan(x: torch.Tensor) -> torch.Tensor:
        return x.cumsum(0)

    mode, *_ = noted(lambda: scan(torch.ones(5, 3)), nn.Identity())
    (call,) = [each.to_json() for each in mode.noted.values() if "scan" in each.name]
    assert cost_of_noted(call) == "no formula for this operator"

    def formula(asked: Call) -> Cost:
        size = asked.bytes_of(0)
        return Cost(flops=0, bytes_read=size, bytes_written=size, kind="elementwise")

    register_cost("workbench_test::scan", formula)
    try:
        found = cost_of_noted(call)
    finally:
        register_cost("workbench_test::scan", None)
    assert isinstance(found, Cost)
    assert found.bytes == 2 * 5 * 3 * 4


def test_a_pointwise_operator_without_a_formula_reads_and_writes_each_once() -> None:
    from workbench.analysis.costs.cost import Cost
    from workbench.analysis.costs.formulas import cost_of_noted

    mode, *_ = noted(lambda: torch.special.entr(torch.ones(5, 3)), nn.Identity())
    (call,) = [each.to_json() for each in mode.noted.values() if "entr" in each.name]
    found = cost_of_noted(call)
    assert isinstance(found, Cost)
    assert found.bytes == 2 * 5 * 3 * 4


def test_the_run_on_disk_says_it_again(tmp_path: Path) -> None:
    run = wb.profile(workload(), steps=2, folder=tmp_path)
    assert run.folder is not None
    again = wb.open(run.folder)
    assert record_of(again).costs == calls_of(run)
