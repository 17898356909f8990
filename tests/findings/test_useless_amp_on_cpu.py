"""WB301 on a CPU: bf16 is advised where it was measured to be faster."""

from pathlib import Path
from typing import Any

import pytest

from tests.findings.loops import Loop, looped
from workbench.findings import diagnose
from workbench.findings.finding import Facts


def products(kind: str) -> Loop:
    """Steps of 1000 µs on the CPU, 600 of them in products of this type."""
    dims = {"Input Dims": [[64, 64], [64, 64]], "Input type": [kind, kind]}

    def body(loop: Loop, at: float) -> None:
        loop.trace.op("aten::mm", at + 100, 600, **dims)

    return looped(body, 1000, gpu=False)


BF16 = {"dtype": "bf16", "supported": True, "native": True, "matmul_ratio": 0.25}


@pytest.mark.parametrize(
    ("kind", "probe", "told"),
    [
        ("float", BF16, True),
        ("float", {**BF16, "native": False}, False),
        ("float", {**BF16, "matmul_ratio": 0.95}, False),
        ("float", {**BF16, "matmul_ratio": None}, False),
        ("c10::BFloat16", BF16, False),
    ],
    ids=["native and fast", "imitated", "hardly faster", "not measured", "in use already"],
)
def test_a_cpu_with_bf16_is_advised_by_what_was_measured(
    tmp_path: Path, kind: str, probe: dict[str, Any], told: bool
) -> None:
    run = products(kind).run(tmp_path)
    (work,) = _matrix_work(run)
    found = [f for f in diagnose(Facts(matrix_work=(work,), dtypes=(probe,))) if f.code == "WB301"]
    assert bool(found) == told
    if told:
        assert found[0].share_of_window == pytest.approx(0.6)
        # 600 µs fall to a quarter, the other 400 to half: 450 + 200 saved.
        assert found[0].saving_ns_per_step_at_most == pytest.approx(650_000)
        assert found[0].setting == {"precision": "bf16"}


def test_what_no_type_shortens_is_no_part_of_the_bound(tmp_path: Path) -> None:
    """Of 1000 µs 700 are operators of forward and backward, 600 of them products: 450 + 50."""
    (work,) = _matrix_work(products("float").run(tmp_path))
    parts = {"input": 100, "forward": 500, "backward": 200, "optimizer": 150, "host_other": 50}
    facts = Facts(
        matrix_work=(work,), dtypes=(BF16,), host_breakdown_ns=parts, trace_window_ns=1000
    )
    (found,) = (each for each in diagnose(facts) if each.code == "WB301")
    assert found.saving_ns_per_step_at_most == pytest.approx(500_000)
    assert {"device", "busy_share", "tensor_core_share"}.isdisjoint(found.evidence)


def _matrix_work(run: Any) -> Any:
    from workbench.analysis.matrix_work import matrix_work

    rank = run.ranks[0]
    return matrix_work(rank.trace, rank.launches, rank.steps)


def test_an_operator_that_autocast_calls_again_counts_once_and_in_the_lower_type(
    tmp_path: Path,
) -> None:
    def body(loop: Loop, at: float) -> None:
        for start, length, kind in ((at + 100, 600, "float"), (at + 200, 400, "c10::BFloat16")):
            loop.trace.op(
                "aten::scaled_dot_product_attention",
                start,
                length,
                **{"Input type": [kind] * 3, "Input Dims": [[1, 1, 8, 8]] * 3},
            )

    (work,) = _matrix_work(looped(body, 1000, gpu=False).run(tmp_path))
    assert work.ns == {("attention", "bf16", None): 22 * 600_000}
