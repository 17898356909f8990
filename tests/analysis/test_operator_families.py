"""Host time of operators by family: a corpus of names from real traces, and the table."""

import pytest

from tests.analysis.traces import US, columns
from tests.kineto import Kineto
from workbench.analysis.launches import join_launches
from workbench.analysis.operator_families import family_times, operator_family, operator_times

CORPUS = {
    "gemm": ["aten::mm", "aten::addmm", "aten::baddbmm", "aten::linear", "aten::_scaled_mm"],
    "convolution": ["aten::conv2d", "aten::mkldnn_convolution", "aten::convolution_backward"],
    "attention": ["aten::_scaled_dot_product_flash_attention", "flash_attn_3::fwd"],
    "normalisation": ["aten::native_layer_norm", "aten::batch_norm", "aten::_fused_rms_norm"],
    "softmax": ["aten::_log_softmax_backward_data"],
    "loss": ["aten::nll_loss_forward", "aten::cross_entropy_loss"],
    "optimizer": ["Optimizer.step#AdamW.step", "aten::_foreach_add_", "aten::_fused_adamw_"],
    "autograd engine": ["autograd::engine::evaluate_function: AddmmBackward0", "TBackward0"],
    "communication": ["c10d::allreduce_", "record_param_comms", "gloo:all_reduce"],
    "compiled": ["CompiledFunction", "Torch-Compiled Region: 0/0", "triton_poi_fused_add_0"],
    "copy": ["aten::_to_copy", "aten::new_empty", "aten::zero_", "aten::is_pinned"],
    "view": ["aten::expand_as", "aten::t", "detach", "aten::_unsafe_view", "aten::slice_backward"],
    "elementwise": ["aten::ne", "aten::mul_", "aten::threshold_backward", "aten::gelu"],
    "reduction": ["aten::sum", "aten::mean", "prims::sum"],
    "sort and index": ["aten::index_put_", "aten::topk", "aten::masked_fill_"],
    "random": ["aten::native_dropout", "aten::randn"],
    "embedding": ["aten::embedding", "aten::embedding_dense_backward"],
    "pooling": ["aten::max_pool2d_with_indices", "aten::upsample_nearest2d"],
    "other": ["TorchDynamo Cache Lookup", "torchvision::nms", "my::operator"],
}


@pytest.mark.parametrize(("family", "names"), CORPUS.items())
def test_names_of_real_traces_have_their_family(family: str, names: list[str]) -> None:
    assert {name: operator_family(name) for name in names} == dict.fromkeys(names, family)


def test_self_times_sum_by_family_and_compilation_is_left_out() -> None:
    """A linear of 50 calls a product of 40 and a view of 4; behind it 30 of elementwise work."""
    trace = Kineto()
    trace.op("inductor_compile (dynamo_timed)", 0, 500)
    trace.op("aten::linear", 500, 50)
    trace.op("aten::t", 502, 4)
    trace.op("aten::addmm", 508, 40)
    trace.op("aten::relu", 560, 10)
    trace.op("aten::mul", 570, 20)
    read = columns(trace)
    operators = operator_times(read, join_launches(read), None)
    assert operators is not None
    assert operators["name"].tolist()[:2] == ["aten::addmm", "aten::mul"]
    table = family_times(operators)
    found = {row.family: (row.calls, row.host_self_ns, row.most_in) for row in table.itertuples()}
    assert found == {
        "gemm": (2, 46 * US, "aten::addmm"),
        "elementwise": (2, 30 * US, "aten::mul"),
        "view": (1, 4 * US, "aten::t"),
    }
    assert table["share"].tolist() == pytest.approx([46 / 80, 30 / 80, 4 / 80])


def test_without_operators_there_is_no_table() -> None:
    trace = Kineto()
    trace.range("mine", 0, 10)
    read = columns(trace)
    assert operator_times(read, join_launches(read), None) is None
