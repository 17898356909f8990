"""FLOPs and bytes of operators by hand arithmetic."""

import math
from typing import Any

import pytest

from workbench.analysis.costs import cost
from workbench.analysis.costs.attention import pairs
from workbench.analysis.costs.cost import Call, Cost
from workbench.analysis.costs.formulas import cost_or_reason, flops_of, register_cost

F, B = "float", "c10::BFloat16"


def counted(operator: str, shapes: Any, types: Any, values: Any = None, **more: Any) -> Cost:
    found = cost_or_reason(operator, shapes, types, {"values": values or [], **more})
    assert isinstance(found, Cost), found
    return found


@pytest.mark.parametrize(
    ("operator", "shapes", "flops", "elements_read", "elements_written"),
    [
        # 2 · 4 · 5 · 6
        ("aten::mm", [[4, 5], [5, 6]], 240, 20 + 30, 24),
        ("aten::addmm", [[6], [4, 5], [5, 6]], 240, 6 + 20 + 30, 24),
        # 3 products of 2 · 4 · 5 · 6
        ("aten::bmm", [[3, 4, 5], [3, 5, 6]], 720, 60 + 90, 72),
        ("aten::baddbmm", [[3, 4, 6], [3, 4, 5], [3, 5, 6]], 720, 72 + 60 + 90, 72),
        # all three added up into one result
        ("aten::addbmm", [[4, 6], [3, 4, 5], [3, 5, 6]], 720, 24 + 60 + 90, 24),
        # 2 × 4 rows through a layer of 5 → 6
        ("aten::linear", [[2, 4, 5], [6, 5], [6]], 2 * 8 * 5 * 6, 40 + 30 + 6, 48),
        ("aten::mv", [[4, 5], [5]], 40, 25, 4),
        ("aten::dot", [[7], [7]], 14, 14, 1),
    ],
)
def test_products(
    operator: str, shapes: Any, flops: int, elements_read: int, elements_written: int
) -> None:
    for name, size in ((F, 4), (B, 2)):
        found = counted(operator, shapes, [name] * len(shapes))
        assert found.flops == flops
        assert found.bytes_read == elements_read * size
        assert found.bytes_written == elements_written * size
        assert (found.kind, found.dtype) == ("gemm", "fp32" if size == 4 else "bf16")


def convolution(
    x: list[int], w: list[int], s: int, p: int, d: int, *, turned: bool = False, more: int = 0
) -> Cost:
    rank = len(x) - 2
    groups = x[1] // (w[0] if turned else w[1])
    values = ["", "", "", [s] * rank, [p] * rank, [d] * rank, turned, [more] * rank, groups]
    types = [F, F, "", "ScalarList", "ScalarList", "ScalarList", "Scalar", "ScalarList", "Scalar"]
    return counted("aten::convolution", [x, w, *[[]] * 7], types, values)


def test_the_first_convolution_of_a_resnet() -> None:
    # 224 → (224 + 6 − 7) // 2 + 1 = 112; each of 112 · 112 · 64 results takes 7 · 7 · 3 weights.
    found = convolution([8, 3, 224, 224], [64, 3, 7, 7], 2, 3, 1)
    assert found.flops == 2 * 8 * 112 * 112 * 64 * 7 * 7 * 3 == 1_888_223_232
    assert found.bytes_read == 4 * (8 * 3 * 224 * 224 + 64 * 3 * 7 * 7)
    assert found.bytes_written == 4 * 8 * 64 * 112 * 112


def test_dilated_grouped_and_one_dimensional_convolutions() -> None:
    # dilation 2 spreads 3 weights over 5: 20 − 5 + 1 = 16 positions
    assert convolution([1, 4, 20, 20], [8, 4, 3, 3], 1, 0, 2).flops == 2 * 16 * 16 * 8 * 4 * 9
    # 2 groups: each of 8 results sees 2 of the 4 channels
    assert convolution([1, 4, 10, 10], [8, 2, 3, 3], 1, 1, 1).flops == 2 * 100 * 8 * 2 * 9
    # depthwise: every channel alone
    assert convolution([2, 6, 10, 10], [6, 1, 3, 3], 1, 1, 1).flops == 2 * 2 * 100 * 6 * 9
    assert convolution([2, 3, 11], [5, 3, 4], 2, 0, 1).flops == 2 * 2 * 4 * 5 * 3 * 4
    assert convolution([1, 2, 4, 5, 6], [3, 2, 2, 2, 2], 1, 0, 1).flops == 2 * 60 * 3 * 2 * 8


def test_transposed_convolution_counts_the_positions_of_its_input() -> None:
    # 16 → (16 − 1) · 2 − 2 + 3 + 1 = 32; each of 16 · 16 inputs meets 4 · 8 · 9 weights
    found = convolution([1, 4, 16, 16], [4, 8, 3, 3], 2, 1, 1, turned=True, more=1)
    assert found.flops == 2 * 16 * 16 * 4 * 8 * 9
    assert found.bytes_written == 4 * 8 * 32 * 32


def test_other_spellings_of_a_convolution_agree() -> None:
    x, w = [2, 4, 9, 9], [6, 4, 3, 3]
    wanted = convolution(x, w, 2, 1, 1)
    values = ["", "", "", "[1, 1]", "[2, 2]", "[1, 1]", "1"]
    shapes: list[Any] = [x, w, *[[]] * 5]
    types = [F, F, *[""] * 5]
    assert counted("aten::mkldnn_convolution", shapes, types, values) == wanted
    cudnn = ["", "", "[1, 1]", "[2, 2]", "[1, 1]", "1"]
    assert counted("aten::cudnn_convolution", shapes[:6], types[:6], cudnn) == wanted


def test_backward_of_a_convolution_counts_the_gradients_that_were_asked_for() -> None:
    grad, x, w = [2, 6, 5, 5], [2, 4, 9, 9], [6, 4, 3, 3]
    once = 2 * 2 * 25 * 6 * 4 * 9
    types = [F, F, F, *["Scalar"] * 8]
    for mask, times in (
        ([True, True, False], 2),
        ([False, True, True], 1),
        ([False, False, True], 0),
    ):
        values = ["", "", "", "[6]", "[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "1", mask]
        found = counted("aten::convolution_backward", [grad, x, w, *[[]] * 8], types, values)
        assert found.flops == times * once
    # only the bias: the gradient is read, six sums are written
    assert (found.bytes_read, found.bytes_written) == (4 * 2 * 6 * 25, 4 * 6)


def attention(q: list[int], kv: list[int], *, causal: bool) -> Cost:
    operator = "aten::_scaled_dot_product_flash_attention_for_cpu"
    values = ["", "", "", "0.", causal, "", ""]
    return counted(operator, [q, kv, kv, [], [], [], []], [F, F, F, *[""] * 4], values)


def test_attention_is_two_products_over_the_pairs_that_meet() -> None:
    q = [2, 4, 8, 16]
    # scores 2 · B · H · L · S · E, and as much for the values
    assert attention(q, q, causal=False).flops == 2 * (2 * 2 * 4 * 8 * 8 * 16)
    # causal: 1 + 2 + … + 8 = 36 of 64 pairs
    assert attention(q, q, causal=True).flops == 2 * (2 * 2 * 4 * 36 * 16)
    # two heads of keys for four of queries: as many FLOPs, fewer bytes
    shared = attention(q, [2, 2, 8, 16], causal=False)
    assert shared.flops == attention(q, q, causal=False).flops
    assert shared.bytes_read == 4 * (1024 + 512 + 512)
    assert shared.bytes_written == 4 * 1024


def test_pairs_of_unequal_lengths() -> None:
    assert pairs(3, 5, causal=True) == 1 + 2 + 3
    assert pairs(5, 3, causal=True) == 1 + 2 + 3 + 3 + 3
    assert pairs(5, 3, causal=False) == 15


def test_backward_of_attention_computes_the_scores_again() -> None:
    q = [2, 4, 8, 16]
    operator = "aten::_scaled_dot_product_flash_attention_for_cpu_backward"
    values = ["", "", "", "", "", "", "0.", "True", "", ""]
    found = counted(operator, [q, q, q, q, q, [2, 4, 8], *[[]] * 4], [*[F] * 6, *[""] * 4], values)
    product = 2 * 2 * 4 * 36 * 16
    assert found.flops == 5 * product
    assert found.recomputed == product


def test_packed_sequences_are_not_guessed() -> None:
    q = [1, 100, 4, 16]
    shapes: list[Any] = [q, q, q, [9], [9], [], [], [], [], []]
    types = [B, B, B, "int", "int", *["Scalar"] * 5]
    values = [*[""] * 7, "0.", "True", "False"]
    found = cost_or_reason("aten::_flash_attention_forward", shapes, types, {"values": values})
    assert found == cost.VARYING
    assert cost_or_reason("flash_attn::_flash_attn_varlen_forward", shapes, types) == cost.VARYING


def test_lstm_and_gru_layers() -> None:
    # LSTM of 16 → 32: four gates; 5 steps of batch 3
    lstm: list[Any] = [[5, 3, 16], [128, 16], [128, 32], [128], [128]]
    wanted = 2 * 5 * 3 * (128 * 16 + 128 * 32)
    forward = counted("aten::mkldnn_rnn_layer", lstm, [F] * 5)
    assert (forward.flops, forward.kind) == (wanted, "recurrent")
    assert counted("aten::mkldnn_rnn_layer_backward", lstm, [F] * 5).flops == 2 * wanted
    # GRU of two layers in both directions: three gates; the second takes 2 · 32 inputs
    first = [[96, 16], [96, 32], [96], [96]] * 2
    second = [[96, 64], [96, 32], [96], [96]] * 2
    shapes = [[5, 3, 16], first + second]
    gru = counted("aten::_cudnn_rnn", shapes, [B, "TensorList"])
    assert gru.flops == 2 * 15 * (2 * 96 * (16 + 32) + 2 * 96 * (64 + 32))


def test_what_is_limited_by_memory_has_bytes_and_no_flops() -> None:
    added = counted("aten::add", [[4, 5], [5], []], [F, F, "Scalar"])
    assert (added.flops, added.bytes_read, added.bytes_written) == (0, 4 * 25, 4 * 20)
    compared = counted("aten::gt", [[4, 5], []], [F, "Scalar"])
    assert (compared.bytes_read, compared.bytes_written) == (80, 20)
    soft = counted("aten::_softmax", [[4, 5], [], []], [B, "", ""])
    assert (soft.kind, soft.bytes) == ("softmax", 2 * 40)
    cast = counted("aten::copy_", [[4, 5], [4, 5], []], [B, F, "Scalar"])
    assert (cast.kind, cast.bytes_read, cast.bytes_written) == ("copy", 80, 40)
    norm = counted("aten::native_layer_norm", [[8, 16], [], [16], [16], []], [F, "", F, F, ""])
    assert (norm.kind, norm.bytes_read, norm.bytes_written) == ("normalisation", 640, 512)
    rows = counted("aten::embedding", [[1000, 8], [2, 3]], [F, "long int"])
    assert (rows.kind, rows.bytes_read, rows.bytes_written) == ("embedding", 6 * 32 + 48, 192)
    summed = counted("aten::sum", [[4, 5], [], []], [F, "ScalarList", ""], ["", "[0]", "True"])
    assert (summed.bytes_read, summed.bytes_written) == (80, 20)


def test_what_a_stride_of_zero_repeats_is_read_once() -> None:
    found = counted("aten::mul", [[4, 5], [4, 5]], [F, F], strides=[[5, 1], [0, 1]])
    assert found.bytes_read == 4 * (20 + 5)


def test_views_move_nothing() -> None:
    assert counted("aten::view", [[4, 5], []], [F, ""]).bytes == 0


def test_kernels_of_a_compiler_through_their_tensors() -> None:
    found = counted("triton_poi_fused_add_relu_0", [[8, 4], [8, 4], []], [B, B, "Scalar"])
    assert (found.kind, found.bytes) == ("fused", 2 * 32 * 2)
    product = counted("triton_tem_fused_mm_3", [[8, 4], [4, 6], [8, 6]], [B, B, B])
    assert (product.kind, product.flops) == ("gemm", 2 * 8 * 4 * 6)
    square = [[4, 4], [4, 4], [4, 4], [4, 4]]
    assert flops_of("triton_tem_fused_mm_3", square, [B] * 4) is None, "which are the factors?"
    part = "triton_poi_fused_embedding_1"
    assert cost_or_reason(part, [[50000, 8], [3, 8]], [F, F]) == cost.NO_FORMULA


def test_optimizer_steps_over_lists() -> None:
    lists = [[[4, 5], [5]]] * 4
    shapes = [*lists, [], [[], []]]
    found = counted("aten::_fused_adamw_", shapes, [[F, F]] * 6)
    # parameters, gradients, two states read; all but the gradients written
    assert (found.bytes_read, found.bytes_written) == (4 * 25 * 4, 3 * 25 * 4)
    added = counted("aten::_foreach_add_", lists[:2], [[F], [F]])
    assert (added.bytes_read, added.bytes_written) == (200, 100)


@pytest.mark.parametrize(
    ("operator", "shapes", "types", "reason"),
    [
        ("aten::mm", [], [], cost.NO_SHAPES),
        ("aten::mm", [[], [4, 5]], ["", F], cost.UNKNOWN_SHAPE),
        ("aten::mm", [["s0", 4], [4, 5]], [F, F], cost.DYNAMIC),
        ("aten::mm", [[-1, 4], [4, 5]], [F, F], cost.DYNAMIC),
        ("aten::mm", [[3, 4], [4, 5]], ["c10::complex<float>"] * 2, cost.COMPLEX),
        ("aten::mm", [[3, 4], [4, 5]], ["long int"] * 2, cost.INTEGER),
        ("aten::mm", [[3, 4], [4, 5]], ["sparse", F], cost.SPARSE),
        ("aten::bmm", [[2, 3, 4], [2, 4, 5]], ["nested", F], cost.NESTED),
        ("aten::mm", [[3, 4], [5, 6]], [F, F], cost.UNKNOWN_SHAPE),
        ("quantized::linear", [[3, 4], [4, 5]], ["c10::quint8", F], cost.QUANTIZED),
        ("aten::_sparse_addmm", [[3, 4]], [F], cost.SPARSE),
        ("aten::_nested_view_from_buffer", [[3, 4]], [F], cost.NESTED),
        ("aten::convolution", [[1, 3, 8, 8], [4, 3, 3, 3]], [F, F], cost.NO_FLAGS),
        ("aten::topk", [[3, 4]], [F], cost.NO_FORMULA),
        ("aten::cat", [[[3, 4], [3, 4]]], ["TensorList"], cost.NO_TYPE),
    ],
)
def test_what_cannot_be_known_is_said_not_guessed(
    operator: str, shapes: Any, types: Any, reason: str
) -> None:
    assert cost_or_reason(operator, shapes, types, {}) == reason
    assert flops_of(operator, shapes, types, {}) is None


def test_an_operator_of_the_users_own() -> None:
    def scan(call: Call) -> Cost:
        count = math.prod(call.dims(0))
        return Cost(flops=6 * count, bytes_read=4 * count, bytes_written=4 * count, kind="gemm")

    register_cost("mylib::scan", scan)
    try:
        assert counted("mylib::scan", [[2, 3]], [F]).flops == 36
    finally:
        register_cost("mylib::scan", None)
    assert flops_of("mylib::scan", [[2, 3]], [F]) is None
