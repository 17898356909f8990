"""Costs joined to a trace: each FLOP once, and what has no count is told."""

import json
from typing import Any

import pytest

from tests.kineto import Kineto
from workbench import trace
from workbench.analysis.costs import cost
from workbench.analysis.costs.join import BETWEEN_RANKS, NO_OPERATOR, Costs, find_costs
from workbench.analysis.launches import join_launches
from workbench.analysis.steps import find_steps

F, B = "float", "c10::BFloat16"


def dims(shapes: Any, types: Any, values: Any = None) -> dict[str, Any]:
    more = {} if values is None else {"Concrete Inputs": values}
    return {"Input Dims": shapes, "Input type": types, **more}


def costs(made: Kineto) -> Costs:
    read = trace.read(json.dumps(made.document()).encode())
    launches = join_launches(read)
    found = find_costs(read, launches, find_steps(read, launches))
    assert found is not None
    return found


def row(found: Costs, name: str) -> dict[str, Any]:
    table = found.table
    rows = table[table["name"] == name].to_dict("records")
    assert len(rows) == 1, rows
    return {str(column): value for column, value in rows[0].items()}


def test_a_layer_recorded_on_three_levels_is_counted_once_in_the_type_that_it_computed_in() -> None:
    made = Kineto(gpu=True)
    # Autocast: linear takes fp32, casts inside, and the product runs in bf16.
    made.op("aten::linear", 0, 100, **dims([[8, 16], [4, 16]], [F, F]))
    made.op("aten::to", 5, 20, **dims([[8, 16], []], [F, "Scalar"]))
    made.op("aten::copy_", 8, 15, **dims([[8, 16], [8, 16]], [B, F]))
    made.launched("copy", call=(10, 2), kernel=(50, 10), correlation=1)
    made.op("aten::mm", 40, 30, **dims([[8, 16], [16, 4]], [B, B]))
    made.launched("nvjet_tst_128x64", call=(45, 2), kernel=(60, 40), correlation=2)
    found = costs(made)
    product = row(found, "aten::mm")
    assert (product["flops"], product["dtype"], product["time_ns"]) == (
        2 * 8 * 16 * 4,
        "bf16",
        40_000,
    )
    assert product["tensor_core_share"] == 1.0
    cast = row(found, "aten::copy_")
    assert (cast["bytes"], cast["time_ns"]) == (8 * 16 * (2 + 4), 10_000)
    assert found.flops == 2 * 8 * 16 * 4
    assert (found.time_ns, found.counted_ns, found.coverage) == (50_000, 50_000, 1.0)
    assert "aten::linear" not in set(found.table["name"])


def test_time_without_a_count_stays_in_the_table_with_its_reason() -> None:
    made = Kineto(gpu=True)
    made.op("aten::mm", 0, 10, **dims([[8, 16], [16, 4]], [B, B]))
    made.launched("gemm", call=(2, 1), kernel=(20, 30), correlation=1)
    made.op("aten::topk", 12, 10, **dims([[8, 16]], [F]))
    made.launched("topk", call=(14, 1), kernel=(50, 20), correlation=2)
    made.op("aten::mm", 24, 10)  # shapes were not recorded
    made.launched("gemm", call=(26, 1), kernel=(70, 25), correlation=3)
    made.launched("ncclDevKernel_AllReduce", call=(40, 1), kernel=(95, 15), correlation=4)
    made.launched("triton_poi_fused_0", call=(44, 1), kernel=(110, 10), correlation=5)
    found = costs(made)
    assert found.time_ns == 100_000
    assert found.coverage == pytest.approx(0.3)
    assert found.uncounted == {
        cost.NO_SHAPES: 25_000,
        cost.NO_FORMULA: 20_000,
        BETWEEN_RANKS: 15_000,
        NO_OPERATOR: 10_000,
    }


def test_without_a_device_the_operators_own_time_counts() -> None:
    made = Kineto()
    made.op("aten::addmm", 0, 100, **dims([[4], [8, 16], [16, 4]], [F, F, F]))
    made.op("aten::expand", 10, 20, **dims([[4], [], []], [F, "", ""]))
    made.op("aten::unique", 110, 50, **dims([[100]], ["long int"]))
    found = costs(made)
    assert not found.on_device
    # the view inside the product belongs to it
    assert row(found, "aten::addmm")["time_ns"] == 100_000
    assert found.coverage == pytest.approx(100 / 150)


def test_fp32_on_tensor_cores_is_tf32() -> None:
    made = Kineto(gpu=True)
    for at, kernel in ((0, "ampere_sgemm_128x64_tn"), (20, "cutlass_80_tensorop_s1688gemm")):
        made.op("aten::mm", at, 10, **dims([[8, 16 + at], [16 + at, 4]], [F, F]))
        made.launched(kernel, call=(at + 2, 1), kernel=(100 + at, 10), correlation=at + 1)
    found = costs(made)
    kinds = {r["shapes"]: r["dtype"] for r in found.table.to_dict("records")}
    assert kinds == {"[[8,16],[16,4]]": "fp32", "[[8,36],[36,4]]": "tf32"}


def test_only_the_steps_that_count_and_calls_of_a_shape_are_summed() -> None:
    made = Kineto(gpu=True)
    for step in range(4):
        start = step * 1000.0
        made.step(step, start, 1000)
        made.op("aten::mm", start + 10, 10, **dims([[8, 16], [16, 4]], [B, B]))
        made.launched("gemm", call=(start + 12, 1), kernel=(start + 100, 800), correlation=step + 1)
    found = costs(made)
    product = row(found, "aten::mm")
    assert found.steps == product["calls"]
    assert product["flops"] == found.steps * 2 * 8 * 16 * 4
    assert product["time_ns"] == found.steps * 800_000


def test_a_compiled_kernel_counts_through_its_parent() -> None:
    made = Kineto(gpu=True)
    shapes = [[8, 4], [8, 4], []]
    made.op("triton_poi_fused_add_0", 0, 10, **dims(shapes, [B, B, "Scalar"]))
    made.launched("triton_poi_fused_add_0", call=(2, 1), kernel=(20, 5), correlation=1)
    found = row(costs(made), "triton_poi_fused_add_0")
    assert (found["kind"], found["bytes"], found["time_ns"]) == ("fused", 128, 5_000)


def test_a_trace_without_operators_has_no_costs() -> None:
    made = Kineto(gpu=True)
    made.launched("gemm", call=(0, 1), kernel=(10, 5), correlation=1)
    read = trace.read(json.dumps(made.document()).encode())
    assert find_costs(read, join_launches(read), None) is None


LENS = "AMD-AGI__TraceLens/tests__traces__"
REAL = {
    f"{LENS}h100__Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": 989.4,
    f"{LENS}mi300__Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": 1307.4,
    f"{LENS}h100__gaunernst_bert-small-uncased__1016001.json.gz": 989.4,
    f"{LENS}mi300__gaunernst_bert-small-uncased__1016001.json.gz": 1307.4,
    "pytorch-labs__segment-anything-fast/amg_example__asdf_True.json.gz": 312.0,
}
"""Dense bf16 peaks of H100 SXM, MI300X and A100 in TFLOP/s (datasheets)."""


@pytest.mark.traces
@pytest.mark.parametrize("name", REAL)
def test_no_operator_of_a_real_trace_is_faster_than_its_device(traces_root: Any, name: str) -> None:
    read = trace.read(traces_root / name)
    launches = join_launches(read)
    found = find_costs(read, launches, find_steps(read, launches))
    assert found is not None
    assert found.flops
    table = found.table[(found.table["flops"].fillna(0) > 0) & (found.table["time_ns"] > 0)]
    rate = table["flops"].astype(float) / table["time_ns"] / 1e3
    assert rate.max() <= REAL[name]
    assert (found.coverage or 0) > 0.5
