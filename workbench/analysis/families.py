"""Which family a device kernel belongs to, told from its name by a table of patterns.

The tables are data: to teach the classifier a name, add a pattern to the row of its family and the
name to the corpus of the test. Rows are tried from the top, the first match wins, and a name that
nothing matches is ``other``, so that its share stays visible instead of inflating a neighbour.
"""

import re
from functools import lru_cache

from workbench.analysis.communication_names import is_communication

OTHER = "other"

FAMILY_PATTERNS: tuple[tuple[str, str], ...] = (
    # Compiler-made names list every operator they fuse, so they must not reach the rows below.
    ("triton", r"^triton_|^triton(poi|red|per|tem)_|^kernel_\d+d\d+d"),
    # ROCm copies and fills with kernels of its runtime where no engine does: copies by what they
    # do. Their class stays compute, as the trace has it, since they occupy compute units.
    ("copy", r"^mem(cpy|set)|\bmem(cpy|set)\b|^__amd_rocclr_(copy|fill)|^dma_request|transdata"),
    ("elementwise", r"rotary_?(pos_?)?emb|fused_?rope|apply_rope"),
    ("copy", r"reshape_and_cache|store_?kv_?cache|set_kv_buffer|kv_?cache_(copy|write)"),
    (
        "attention",
        r"flash_?(attn|fwd|bwd|attention|mla)|\bflash::|fmha|attention|attn_(fwd|bwd)|_attn\b"
        r"|\bmha_|sdpa|_fwd_kernel_aligned|\bmla_|transform_bias_rescale_qkv|pytorch_flash",
    ),
    (
        "embedding",
        r"embedding|^split_eb_|permute_pooled_embs|permute_(1d|2d|indices|lengths|data)\w*_?kernel"
        r"|fbgemm\w*::.*(permute|offsets_range|segment|bucketize|jagged|batched_unary)"
        r"|bounds_check_indices|linearize_index|\bemb_?bag",
    ),
    (
        "optimizer",
        r"multi_?tensor_?apply|foreach_?\w*kernel|(fused_?)?(adamw?|adagrad|lamb|lars|lion|rmsprop)"
        r"_?(kernel|step|update|functor|math)|fused_?(adam|sgd|lamb|adagrad)|sgd_?(kernel|step)",
    ),
    ("softmax", r"soft_?max"),
    (
        "normalisation",
        r"batch_?norm|layer_?norm|group_?norm|instance_?norm|rms_?norm|\bbn_(fw|bw)|cudnn_bn"
        r"|gamma_?beta|rowwise_?moments|computefusedparams|computebackwardfusedparams"
        r"|computeinternalgradients|\bln_(fwd|bwd)|weight_norm|norm_(fwd|bwd)",
    ),
    (
        "copy",
        r"nchw_?to|nhwc_?to|chw2|tonhwc|tonchw|convert_?tensor|transpose|direct_copy_kernel"
        r"|copy_device_to_device|catarraybatchedcopy|split_?with_?sizes|copy_?kernel|permute_?kernel"
        r"|bfloat16_copy|float16_copy|_to_copy|split_cat|chunk_cat|im2d2im",
    ),
    (
        "convolution",
        r"convol|implicit_?gemm|(?<![a-z])conv(?!ert|ersion)(\d?d?)?(_|:|\b|fwd|bwd|fprop|bias)"
        r"|fprop|dgrad|wgrad|winograd|im2col|im2d2col|col2im|s?cudnn|igemm_(fwd|bwd|wrw)"
        r"|^conv[23]d|flip_filter|fft[12]d_|pointwise_mult_and_sum_complex|cask_|naive_conv|miopen.*conv",
    ),
    (
        "gemm",
        r"(?<!fb)gemm|nvjet|cijk_|matmul|cublas|splitkreduce|wgmma|gemv|xxt_kernel|ba_plus_caa"
        r"|^fc-dtype|^aclnn(add)?mm_|\bdot_kernel|reduce_1block_kernel|scal_kernel|hipblas|rocblas|_mm_kernel|mm_splitk|bmm_",
    ),
    (
        "sort_scan",
        r"sort|scan|topk|devicecompact|devicepartition|deviceselect|reducebykey|runlength|nonzero"
        r"|unique|partition_config|mergesort|histogram|searchsorted|bitmatrix",
    ),
    (
        "indexing",
        r"index_?(elementwise|select|add|put|fill|copy|kernel|reduce)|indexing_backward|gather"
        r"|scatter|write_indices|masked_(select|scatter)|routing|token_ids|clamp_position"
        r"|kv_indices|take_|flip_kernel|roll_cuda|_nms|nms_kernel|paged_kv",
    ),
    ("pooling", r"pool|upsample|interpolate|resize|grid_sample|roi_align"),
    ("random", r"dropout|distribution_|philox|curand|rocrand|randperm|bernoulli|multinomial"),
    ("fft", r"\b(regular|vector|multi_bluestein|radix)_?fft|fft_|cufft|rocfft"),
    (
        "reduction",
        r"reduce|reduction|nll_loss|nllcriterion|_norm_kernel|cross_?entropy|argmax|argmin"
        r"|loss_(forward|backward|kernel)",
    ),
    (
        "elementwise",
        r"elementwise|element_?wise|functor|pointwise|act_and_mul|activation|silu|gelu|sigmoid"
        r"|triu_tril|tril_indices|arange|fill|scalepackedtensor|subtensorop|optensor|tensorelement"
        r"|quantize|fp8rowwise|qparam|hfp8|dequant|amax|vectorized|unrolled|\b(add|mul)_kernel"
        r"|compute_cuda_kernel|where|cast"
        r"|^aclnn\w*(add|mul|sub|div|sqrt|exp|neg|pow|fill|zero|one|greater|less|eq)"
        r"|^(customized_fba_)?(add|mul|sub|div|relu)\w*-dtype",
    ),
)
"""Family and regular expression, tried in this order on the lower-case name."""

FAMILIES: tuple[str, ...] = (
    *dict.fromkeys(("communication", *(family for family, _ in FAMILY_PATTERNS))),
    OTHER,
)
"""Every family that ``family`` may answer."""

MATRIX_FAMILIES = ("gemm", "convolution", "attention")
"""Families whose arithmetic a tensor core (or matrix core) could do."""

_NO_TENSOR_CORE = tuple(
    name for name in FAMILIES if name not in (*MATRIX_FAMILIES, "triton", OTHER)
)

TENSOR_CORE_PATTERNS: tuple[tuple[bool, str], ...] = (
    # cuBLAS (Hopper, Blackwell), whose names no longer say what the older lists look for.
    (True, r"nvjet_"),
    (True, r"tensorop|wmma|wgmma|hgmma|utcmma|tcgen05|[hib]mma|_tensor\d+x\d+x\d+"),
    (True, r"[shidq]\d?_?(161616|16816|16832|1688|884|161632|168128)(?!\d)"),
    (True, r"gemm_(e4m3|e5m2|fp8)|_xmma_gemm_(bf16|f16|tf32|e4m3|e5m2|i8)|f32f32_tf32"),
    # AMD matrix cores: Tensile's matrix instruction, Composable Kernel, MIOpen's assembly.
    (True, r"cijk_.*_mi\d+x\d+|mfma|xdl|gtcx\d?_|smfmac|gfx9\d+.*fmha|aiter::fmha"),
    (True, r"flash_?(fwd|bwd)_?\w*kernel|flashattn(fwd|bwd)sm\d+|fmha_cutlass\w+_sm(7|8|9|1\d)\d"),
    (True, r"fmha_v2|cudnn_\w*flash|cudnn_generated_fort_native_sdpa"),
    (False, r"flash(::|attn)\w*(pre|post)process|convert_dq|prepare_varlen|attention\w*reduce"),
    (False, r"simt|sgemm|s?cudnn_\d|scudnn|cgemm|gemv|gemmsn|gemmk1|dot_kernel|fmha_\w+_sm[56]\d"),
    (False, r"cijk_.*_tt\d+_\d+|splitkreduce|reducesplitk|reduce_1block|scal_kernel"),
    (False, r"epilogue::impl|_engine<|convolve_s|winograd|fft[12]d|im2col|im2d2col|precompute_"),
    (False, r"compute\w*offsets|flip_filter|pointwise_mult|reduce_wgrad|^triton_(poi|red|per)_"),
)
"""Answer and regular expression, tried in this order on the lower-case name."""

_FAMILIES = tuple((family, re.compile(pattern)) for family, pattern in FAMILY_PATTERNS)
_TENSOR_CORE = tuple((answer, re.compile(pattern)) for answer, pattern in TENSOR_CORE_PATTERNS)


@lru_cache(maxsize=65536)
def family(name: str) -> str:
    """The family of a device kernel, copy or set, of whatever vendor.

    Args:
        name: The name as the trace gives it, demangled or not, in any case.

    Returns:
        One of ``FAMILIES``; ``other`` when no pattern knows the name.
    """
    if is_communication(name):
        return "communication"
    lower = name.lower()
    return next((known for known, pattern in _FAMILIES if pattern.search(lower)), OTHER)


@lru_cache(maxsize=65536)
def tensor_core(name: str) -> bool | None:
    """Whether a kernel computes on tensor cores (matrix cores), as far as its name tells.

    A name tells more than a list of known kernels would: ``nvjet_*`` and ``wgmma`` names of newer
    GPUs say yes, ``sgemm`` and ``simt`` say no, and what says neither stays unknown, so that no
    advice is built on it.

    Returns:
        ``True``, ``False``, or ``None`` when the name does not tell.
    """
    if family(name) in _NO_TENSOR_CORE:
        return False
    lower = name.lower()
    return next((answer for answer, pattern in _TENSOR_CORE if pattern.search(lower)), None)
