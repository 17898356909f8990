"""Which operators follow which formula for their bytes; the tables are data."""

from __future__ import annotations

from workbench.analysis.costs import movement as of

_VIEWS = """view reshape as_strided as_strided_ t t_ transpose transpose_ permute expand expand_as
select slice narrow unsqueeze unsqueeze_ squeeze squeeze_ detach detach_ alias split
split_with_sizes chunk unbind unflatten flatten _unsafe_view _reshape_alias view_as movedim
swapaxes unfold diagonal real imag contiguous to type_as lift_fresh result_type size stride empty
empty_like empty_strided new_empty new_empty_strided resize_ set_ is_nonzero item
_local_scalar_dense is_pinned _has_compatible_shallow_copy_type broadcast_tensors numpy_T adjoint
mT data requires_grad_ record_stream is_same_size resolve_conj resolve_neg"""
_COMPOSITES = """conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d matmul
batch_norm _batch_norm_impl_index layer_norm group_norm rms_norm softmax log_softmax
cross_entropy_loss nll_loss nll_loss_nd nll_loss2d scaled_dot_product_attention dropout max_pool1d
max_pool2d max_pool3d adaptive_avg_pool2d lstm gru rnn_tanh einsum stack zeros ones full
zeros_like ones_like full_like new_zeros new_ones new_full _to_copy arange bilinear one_hot
embedding_bag binary_cross_entropy_with_logits thnn_conv2d _conv_depthwise
_batch_norm_impl_index_backward value_selecting_reduction_backward _fused_sdp_choice
hinge_embedding_loss smooth_l1_loss l1_loss"""
_UNARY = """neg abs exp exp2 log log2 log1p sqrt rsqrt reciprocal sin cos tan tanh sigmoid relu
relu6 gelu silu mish hardtanh hardswish hardsigmoid leaky_relu elu selu celu softplus erf erfc
erfinv floor ceil round trunc sign square clamp clamp_min clamp_max threshold pow bitwise_not frac
expm1 logit nan_to_num triu tril sinh cosh asin acos atan log_sigmoid positive"""
_BINARY = """add sub mul div rsub remainder fmod maximum minimum atan2 floor_divide true_divide
bitwise_and bitwise_or bitwise_xor __and__ __or__ __iand__ __ior__ mse_loss_elementwise
threshold_backward sigmoid_backward tanh_backward gelu_backward silu_backward hardtanh_backward
leaky_relu_backward hardswish_backward hardsigmoid_backward mish_backward native_dropout_backward
elu_backward softplus_backward masked_fill dropout_backward copysign hypot xlogy"""
_TERNARY = "addcmul addcdiv lerp where mse_loss_backward"
_TESTS_1 = "logical_not isnan isinf isfinite"
_TESTS = "eq ne lt le gt ge logical_and logical_or logical_xor isclose"
_REDUCTIONS = """sum mean max min amax amin prod norm linalg_vector_norm all any argmax argmin
logsumexp var std nansum"""
_FILLS = "fill_ zero_ normal_ uniform_ random_ bernoulli_ exponential_ trunc_normal_"
_POOLS = (
    "avg_pool2d avg_pool3d avg_pool1d _adaptive_avg_pool2d _adaptive_avg_pool3d adaptive_avg_pool1d"
)
_RESAMPLE = """upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_bilinear2d
upsample_bicubic2d upsample_trilinear3d upsample_linear1d _upsample_bilinear2d_aa"""


def _named(names: str, formula: of.Formula, *, in_place: bool = False) -> dict[str, of.Formula]:
    found = {f"aten::{name}": formula for name in names.split()}
    if in_place:
        found |= {f"{name}_": formula for name in tuple(found) if not name.endswith("_")}
    return found


MOVEMENT: dict[str, of.Formula] = {
    **_named(_VIEWS, of.nothing),
    **_named(_COMPOSITES, of.nothing),
    "detach": of.nothing,
    "detach_": of.nothing,
    "inductor::_reinterpret_tensor": of.nothing,
    **_named(_UNARY, of.elementwise(1), in_place=True),
    **_named(_BINARY, of.elementwise(2), in_place=True),
    **_named(_TERNARY, of.elementwise(3), in_place=True),
    **_named(_TESTS_1, of.elementwise(1, truth=True)),
    **_named(_TESTS, of.elementwise(2, truth=True)),
    **_named(_REDUCTIONS, of.reduction),
    **_named("mse_loss cumsum", of.elementwise(2)),
    **_named(_FILLS, of.fill),
    **_named("copy_", of.copy),
    **_named("clone native_dropout", of.clone),
    **_named("cat", of.concatenation),
    **_named("embedding", of.embedding),
    **_named("embedding_dense_backward", of.embedding_backward),
    **_named("index_select", of.row_selection),
    **_named("_embedding_bag _embedding_bag_forward_only", of.embedding_bag),
    **_named(
        "native_layer_norm native_group_norm native_batch_norm cudnn_batch_norm miopen_batch_norm "
        "_fused_rms_norm _batch_norm_with_update _batch_norm_no_update",
        of.normalisation,
    ),
    "aten::_native_batch_norm_legit": of.normalisation,
    "aten::native_layer_norm_backward": of.normalisation_backward(5),
    "aten::_fused_rms_norm_backward": of.normalisation_backward(4),
    "aten::native_batch_norm_backward": of.normalisation_backward(2),
    "aten::batch_norm_backward": of.normalisation_backward(2),
    "aten::cudnn_batch_norm_backward": of.normalisation_backward(2),
    "aten::miopen_batch_norm_backward": of.normalisation_backward(2),
    "aten::native_group_norm_backward": of.normalisation_backward(4),
    **_named("_softmax _log_softmax _safe_softmax", of.softmax),
    **_named("_softmax_backward_data _log_softmax_backward_data", of.softmax_backward),
    **_named("nll_loss_forward nll_loss2d_forward", of.loss),
    **_named("nll_loss_backward nll_loss2d_backward", of.loss_backward),
    **_named(_POOLS, of.pooling),
    **_named("max_pool2d_with_indices max_pool3d_with_indices", of.pooling_with_indices),
    **_named(
        "max_pool2d_with_indices_backward avg_pool2d_backward _adaptive_avg_pool2d_backward",
        of.pooling_backward,
    ),
    **_named(_RESAMPLE, of.resampling),
    **_named("_fused_adam_ _fused_adamw_", of.optimizer_step(5)),
    **_named("_fused_sgd_", of.optimizer_step(3)),
    **_named("_fused_adagrad_", of.optimizer_step(3)),
}
