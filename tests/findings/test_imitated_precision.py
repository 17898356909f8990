"""WB302, scenario P01: a low precision that the device only imitates."""

from typing import Any

import pytest

from tests.findings.facts import MS, found
from workbench.analysis.matrix_work import MatrixWork
from workbench.findings import Facts


def probe(dtype: str, native: bool | None, matmul: float | None, **rest: Any) -> dict[str, Any]:
    return {
        "dtype": dtype,
        "supported": True,
        "native": native,
        "matmul_ratio": matmul,
        "convolution_ratio": None,
        "reason": None,
    } | rest


XEON = (probe("fp32", True, 1.0), probe("bf16", False, 49.0), probe("fp16", False, 81.0))
"""An AVX2-only Xeon of pytorch #146508, products of 500²."""
EPYC = (probe("fp32", True, 1.0), probe("bf16", True, 0.25), probe("fp16", False, 64.0))


def running(dtype: str, probes: Any, *, part: float = 0.5, precision: str | None = None) -> Facts:
    """Forty steps of 10 ms on the CPU, of which products in the type take a part."""
    work = MatrixWork(
        device=None,
        ns={("gemm", dtype, None): int(part * 20 * 10 * MS)},
        time_ns=20 * 10 * MS,
        steps=20,
    )
    return Facts(
        matrix_work=(work,),
        dtypes=probes,
        step_ns=(10 * MS,) * 40,
        effective={"precision": precision or dtype},
    )


def test_p01_bf16_on_an_old_processor_is_told_with_its_price() -> None:
    """Half of each step of 10 ms is products: at most these 5 ms and half of the other 5 go."""
    finding = found(running("bf16", XEON), "WB302")
    assert finding is not None
    assert "only imitates" in finding.title
    assert "49 ×" in finding.title
    assert finding.severity == "critical"
    assert finding.saving_ns_per_step_at_most == pytest.approx(7.5 * MS)
    assert finding.speedup_at_most == pytest.approx(10 / 2.5)
    assert finding.setting == {"precision": "fp32"}


def test_p01_fp16_is_better_changed_to_a_type_that_is_native() -> None:
    finding = found(running("fp16", EPYC), "WB302")
    assert finding is not None
    assert finding.setting == {"precision": "bf16"}


@pytest.mark.parametrize(
    ("dtype", "probes"),
    [
        ("bf16", EPYC),
        ("fp32", XEON),
        ("bf16", ()),
        ("bf16", (probe("bf16", True, 1.05),)),
        ("bf16", (probe("bf16", None, None),)),
    ],
    ids=["native", "not in use", "never asked", "within noise", "nobody knows"],
)
def test_p01_stays_silent(dtype: str, probes: Any) -> None:
    assert found(running(dtype, probes), "WB302") is None


def test_a_native_type_that_is_slower_all_the_same_is_not_called_imitated() -> None:
    finding = found(running("bf16", (probe("bf16", True, 1.8),)), "WB302")
    assert finding is not None
    assert "which it has instructions for" in finding.title
    assert finding.severity == "warning"


def test_the_slower_of_product_and_convolution_counts() -> None:
    finding = found(running("fp16", (probe("fp16", False, 2.0, convolution_ratio=54.0),)), "WB302")
    assert finding is not None
    assert "54 ×" in finding.title


def test_an_imitated_type_that_could_not_be_measured_cannot_tell() -> None:
    probes = (probe("fp16", False, None, reason="its smallest product did not end within 2 s"),)
    finding = found(running("fp16", probes), "WB302")
    assert finding is not None
    assert finding.verdict == "cannot_tell"
    assert "did not end" in finding.title


def test_without_shapes_the_switch_itself_tells_the_type() -> None:
    facts = Facts(dtypes=XEON, step_ns=(10 * MS,) * 40, effective={"precision": "bf16_pure"})
    finding = found(facts, "WB302")
    assert finding is not None
    assert finding.saving_ns_per_step_at_most is None
