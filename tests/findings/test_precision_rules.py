"""WB303 and WB304: sizes that tensor cores do not take whole, and weights cast again and again."""

from pathlib import Path
from typing import Any

import pytest

from tests.findings.loops import Loop, fired, looped, of

HALF, FLOAT = "c10::BFloat16", "float"


def head(width: int, *, kind: str = HALF, rows: int = 512, **rest: Any) -> Loop:
    """A step of 1000 µs on the CPU, 400 of them in the head of a language model."""
    dims = {"Input Dims": [[width], [rows, 768], [768, width]], "Input type": [kind] * 3}

    def body(loop: Loop, at: float) -> None:
        loop.trace.op("aten::addmm", at + 100, 400, **dims, **rest)

    return looped(body, 1000, gpu=False)


def test_a_vocabulary_that_is_no_multiple_of_8_is_named_and_no_gain_promised(
    tmp_path: Path,
) -> None:
    finding = fired(head(50_257).run(tmp_path), "WB303")
    assert finding.share_of_window == pytest.approx(0.4)
    assert "50257" in finding.title
    assert "0 to 10 %" in finding.title
    assert finding.speedup_at_most is None
    assert "Pad 50257" in finding.advice


@pytest.mark.parametrize(
    "loop",
    [head(50_304), head(50_257, kind=FLOAT), head(50_304, rows=141), head(50_257, rows=1)],
    ids=["aligned", "fp32", "odd number of tokens", "one row waits for memory"],
)
def test_sizes_that_do_not_matter_are_silent(tmp_path: Path, loop: Loop) -> None:
    assert of(loop.run(tmp_path), "WB303") is None


def test_strides_tell_a_factor_whose_rows_lie_apart_by_an_odd_size(tmp_path: Path) -> None:
    """The gradient of the head: (512 × 50257) · (50257 × 768); the result is aligned."""
    dims = {
        "Input Dims": [[512, 50_257], [50_257, 768]],
        "Input type": [HALF, HALF],
        "Input Strides": [[50_257, 1], [768, 1]],
    }

    def body(loop: Loop, at: float) -> None:
        loop.trace.op("aten::mm", at + 100, 400, **dims)

    assert "50257" in fired(looped(body, 1000, gpu=False).run(tmp_path), "WB303").advice


@pytest.mark.parametrize(("kernel", "said"), [("bf16", True), ("f32f32", False)])
def test_missing_shapes_are_said_where_half_precision_matters(
    tmp_path: Path, kernel: str, said: bool
) -> None:
    def body(loop: Loop, at: float) -> None:
        loop.trace.op("aten::mm", at, 30)
        loop.launch(
            f"ampere_{kernel}_s16816gemm_{kernel}_128x64_tn",
            call=(at + 5, 5),
            kernel=(at + 12, 980),
        )

    loop = looped(body, 1000)
    for event in loop.trace.events:
        if kernel == "f32f32" and event["cat"] == "kernel":
            event["name"] = "ampere_sgemm_128x64_tn"
    finding = of(loop.run(tmp_path), "WB303")
    assert (finding is not None) == said
    if finding is not None:
        assert finding.verdict == "cannot_tell"
        assert "shapes were not recorded" in finding.title


def casting(casts: int, weights: int) -> Loop:
    """Steps of 1000 µs that cast a weight of 256 × 128 so often, 20 µs each time."""
    shape = {"Input Dims": [[256, 128]], "Input type": [FLOAT]}

    def body(loop: Loop, at: float) -> None:
        for each in range(casts):
            loop.trace.op("aten::_to_copy", at + 20 * each, 20, **shape)
            node = "autograd::engine::evaluate_function: ToCopyBackward0"
            loop.trace.op(node, at + 500 + 5 * each, 3)
        for each in range(weights):
            loop.trace.op("torch::autograd::AccumulateGrad", at + 900 + 5 * each, 3, **shape)

    return looped(body, 1000, gpu=False)


def test_a_weight_that_is_cast_in_every_call_is_told(tmp_path: Path) -> None:
    """P04: ten calls of one layer: ten casts where one would do, 180 of 1000 µs for nothing."""
    finding = fired(casting(10, 1).run(tmp_path), "WB304")
    assert finding.evidence["casts_per_step"] == 10
    assert finding.share_of_window == pytest.approx(0.18)
    assert "outermost region" in finding.advice


@pytest.mark.parametrize(
    ("casts", "weights"), [(10, 10), (10, 5)], ids=["equal layers", "checkpointing"]
)
def test_a_cast_or_two_for_each_weight_is_silent(tmp_path: Path, casts: int, weights: int) -> None:
    assert of(casting(casts, weights).run(tmp_path), "WB304") is None
