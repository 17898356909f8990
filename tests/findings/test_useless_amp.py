"""WB301 and WB306: is half precision worth a try here, and why not? Also scenarios P03 and P08."""

from pathlib import Path
from typing import Any

import pytest

from tests.findings.loops import Loop, fired, looped, of
from workbench.analysis.kernel_dtypes import kernel_dtype, operator_dtype
from workbench.analysis.matrix_work import MatrixWork
from workbench.findings import diagnose
from workbench.findings.finding import Facts

SGEMM = "ampere_sgemm_128x64_nn"
TF32 = "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize128x128x16_stage4_warpsize2x2x1"
FP16 = "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn"
NVJET = "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_NNT"
SLOW_CONVOLUTION = "void implicit_convolve_sgemm<__half, __half, 1024, 5, 5, 3, 3, 3, 1>(int)"
FAST_CONVOLUTION = "sm80_xmma_fprop_implicit_gemm_f16f16_f16f16_f16_nhwckrsc_nhwc_tilesize128x128"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"

A100 = ("NVIDIA A100-SXM4-40GB", 8, 0)
V100 = ("Tesla V100-SXM2-16GB", 7, 0)
GTX = ("NVIDIA GeForce GTX 1650", 7, 5)
H100 = ("NVIDIA H100 80GB HBM3", 9, 0)
MI210 = ("AMD Instinct MI210", 9, 0)


def on(loop: Loop, device: tuple[str, int, int]) -> Loop:
    name, major, minor = device
    known = loop.trace.header["deviceProperties"][0]
    told = {**known, "name": name, "computeMajor": major, "computeMinor": minor}
    loop.trace.header["deviceProperties"] = [told]
    return loop


def busy(kernel: str, device: tuple[str, int, int], *, other: str = ADD, types: Any = None) -> Loop:
    """Steps of 1000 µs, 950 of them busy: 600 in one matrix kernel, 350 in another.

    The host waits for the device until the end of each step, as where it reads the loss.
    """

    def body(loop: Loop, at: float) -> None:
        inputs = {} if types is None else {"Input type": types, "Input Dims": [[64, 64]] * 2}
        loop.trace.op("aten::mm", at + 2, 20, **inputs)
        loop.launch(kernel, call=(at + 5, 5), kernel=(at + 30, 600))
        loop.launch(other, call=(at + 30, 5), kernel=(at + 630, 350))
        loop.trace.runtime("cudaDeviceSynchronize", at + 40, 945, correlation=0)

    return on(looped(body, 1000), device)


def starved(kernel: str, device: tuple[str, int, int]) -> Loop:
    """P03 (a): kernels of 3 µs with gaps of 10, each launched into an empty queue."""

    def body(loop: Loop, at: float) -> None:
        for each in range(20):
            start = at + 13 * each
            loop.trace.op("aten::mm", start, 11)
            loop.launch(kernel, call=(start + 4, 5), kernel=(start + 10, 3))

    return on(looped(body, 260), device)


def test_p03_a_device_that_waits_gains_nothing_from_half_precision(tmp_path: Path) -> None:
    """3 of 13 µs are busy: 23 %."""
    finding = fired(starved(FP16, A100).run(tmp_path), "WB301")
    assert "hardly makes this step faster" in finding.title
    assert "waits for the host" in finding.title
    assert finding.evidence["busy_share"] == pytest.approx(3 / 13, rel=0.02)
    assert finding.setting is None
    assert finding.saving_ns_per_step_at_most is None


def test_p03_a_without_half_precision_is_left_to_the_launch_rule(tmp_path: Path) -> None:
    run = starved(SGEMM, A100).run(tmp_path)
    assert of(run, "WB301") is None
    assert "a lower precision" not in fired(run, "WB201").advice


@pytest.mark.parametrize(("kernel", "verdict"), [(SGEMM, "no"), (FP16, "yes")])
def test_p03_b_a_gtx_has_no_tensor_cores(tmp_path: Path, kernel: str, verdict: str) -> None:
    finding = fired(busy(kernel, GTX).run(tmp_path), "WB301")
    assert "GTX 1650 has no tensor cores" in finding.title
    assert "compute capability 7.5" in finding.title
    assert finding.verdict == verdict
    assert finding.setting is None


def test_p03_c_tf32_has_taken_most_of_the_gain_already(tmp_path: Path) -> None:
    finding = fired(busy(TF32, A100).run(tmp_path), "WB301")
    assert finding.verdict == "no"
    assert "TF32" in finding.title
    assert finding.evidence["tensor_core_share"] == 1.0


@pytest.mark.parametrize(
    ("device", "precision"), [(A100, "bf16"), (V100, "fp16")], ids=["A100", "V100"]
)
def test_tensor_cores_that_stand_unused_are_told_with_the_type_that_the_device_has(
    tmp_path: Path, device: tuple[str, int, int], precision: str
) -> None:
    """600 of 950 µs of device time, in steps of 1000, are fp32 products without tensor cores.

    At most they and, by half the bytes, half of the other 350 µs are saved.
    """
    finding = fired(busy(SGEMM, device).run(tmp_path), "WB301")
    assert "stand unused" in finding.title
    assert finding.severity == "warning"
    assert finding.share_of_window == pytest.approx(600 / 1000)
    assert finding.saving_ns_per_step_at_most == pytest.approx(775_000)
    assert finding.setting == {"precision": precision}


@pytest.mark.parametrize(
    ("kernel", "device"),
    [(FP16, A100), (NVJET, H100), ("nvjet_hsh_64x8_64x16_1x4_h_bz_TNT", H100), (FP16, V100)],
    ids=["fp16", "nvjet bf16", "nvjet fp16", "Volta"],
)
def test_a_busy_device_that_uses_its_tensor_cores_needs_no_advice(
    tmp_path: Path, kernel: str, device: tuple[str, int, int]
) -> None:
    run = busy(kernel, device).run(tmp_path)
    assert of(run, "WB301") is None
    assert of(run, "WB306") is None


@pytest.mark.parametrize("kernel_us", [60, 120], ids=["short", "long"])
def test_work_that_no_step_waits_for_gains_nothing_by_another_type(
    tmp_path: Path, kernel_us: float
) -> None:
    """The loader takes 100 of 150 µs; the kernel runs beside it, and nothing waits for its end.

    For 60 µs the device is busy for 40 % of the time: nothing to say. For 120 it is busy for 80 %,
    and still each step is as long as its host, so that faster products save nothing.
    """

    def body(loop: Loop, at: float) -> None:
        loop.trace.loader(at, 100)
        loop.trace.op("aten::mm", at + 100, 45)
        loop.launch(SGEMM, call=(at + 105, 5), kernel=(at + 120, kernel_us))

    run = on(looped(body, 150), A100).run(tmp_path)
    for code in ("WB301", "WB306"):
        finding = of(run, code)
        if kernel_us == 60:
            assert finding is None
            continue
        assert finding is not None
        assert finding.severity == "info"
        assert finding.saving_ns_per_step_at_most == pytest.approx(0, abs=6_000)
        assert (finding.share_of_window or 0) < 0.05 or code == "WB306"


def test_a_device_of_unknown_kind_gets_no_advice(tmp_path: Path) -> None:
    loop = busy(SGEMM, A100)
    loop.trace.header["deviceProperties"] = []
    assert of(loop.run(tmp_path), "WB301") is None


def test_kernels_of_unknown_kind_are_no_fp32_without_tensor_cores(tmp_path: Path) -> None:
    assert of(busy("my_own_gemm_kernel", A100).run(tmp_path), "WB301") is None


def test_p08_half_precision_without_a_fast_kernel_names_the_versions(tmp_path: Path) -> None:
    types = ["c10::Half", "c10::Half"]

    def body(loop: Loop, at: float) -> None:
        inputs = {"Input type": types, "Input Dims": [[8, 64, 8, 8, 8], [64, 64, 3, 3, 3]]}
        loop.trace.op("aten::cudnn_convolution", at + 2, 20, **inputs)
        loop.launch(SLOW_CONVOLUTION, call=(at + 5, 5), kernel=(at + 30, 600))
        loop.launch(ADD, call=(at + 30, 5), kernel=(at + 630, 350))
        loop.trace.runtime("cudaDeviceSynchronize", at + 40, 945, correlation=0)

    loop = on(looped(body, 1000), A100)
    finding = fired(loop.run(tmp_path), "WB301")
    assert "0 % of the time of convolutions is in tensor-core kernels" in finding.title
    assert "not recorded in this trace" in finding.title
    assert finding.share_of_window == pytest.approx(600 / 1000)
    loop.trace.header["cuda_runtime_version"] = 11000
    told = fired(loop.run(tmp_path), "WB301")
    assert told.evidence["versions"] == {"cuda_runtime_version": "11.0"}


def test_p08_versions_of_a_run_are_in_the_title() -> None:
    work = MatrixWork(
        device=0, ns={("convolution", "fp16", False): 600_000}, time_ns=950_000, steps=22
    )
    facts = _facts(work, environment={"torch": "1.7.1", "cudnn": "8005", "cuda": "11.0"})
    (finding,) = [f for f in diagnose(facts) if f.code == "WB301"]
    assert "torch 1.7.1, cuda 11.0, cudnn 8005" in finding.title
    assert finding.evidence["versions"]["cudnn"] == "8005"


@pytest.mark.parametrize(
    ("ns", "why"),
    [
        ({("convolution", "fp16", True): 600_000}, "fast kernels"),
        ({("convolution", "fp16", None): 600_000}, "names tell nothing"),
        (
            {("convolution", "fp16", True): 300_000, ("convolution", "fp16", False): 300_000},
            "half",
        ),
    ],
)
def test_p08_stays_silent(ns: dict[Any, int], why: str) -> None:
    work = MatrixWork(device=0, ns=ns, time_ns=950_000, steps=22)
    assert not [f for f in diagnose(_facts(work)) if f.code == "WB301"], why


def _facts(work: MatrixWork, **rest: Any) -> Facts:
    from workbench.findings import DeviceFacts

    device = DeviceFacts(
        index=0,
        window_ns=1_000_000,
        busy_ns=950_000,
        idle_ns=50_000,
        idle_by_cause={},
        exposed_communication_ns=0,
        exposed_memory_ns=0,
        name="NVIDIA GeForce RTX 3090",
        arch="8.6",
    )
    return Facts(devices=(device,), matrix_work=(work,), **rest)


def test_types_of_operators_tell_more_than_names(tmp_path: Path) -> None:
    """A tensor-core kernel of an operator on fp32 data is TF32, whatever its name."""
    run = busy("some_tensorop_gemm_kernel", A100, types=["float", "float"]).run(tmp_path)
    assert "TF32" in fired(run, "WB301").title


def test_matrix_cores_of_amd_multiply_fp32_in_full(tmp_path: Path) -> None:
    """Tensile's MI16x16x1: one fp32 product at a time, and no TF32, which an MI250 lacks."""
    kernel = "Cijk_Alik_Bljk_SB_Bias_AS_MT64x16x32_MI16x16x1_SN_ISA90a"
    run = busy(kernel, MI210, types=["float", "float"]).run(tmp_path)
    assert of(run, "WB301") is None


def test_amds_version_numbers_are_no_compute_capability(tmp_path: Path) -> None:
    """9.0 is gfx90a on an MI210 and gfx906 on an MI60; of a nameless device nobody can tell.

    With NVIDIA's table all three would have tensor cores, and TF32 to switch on.
    """
    kernel = "Cijk_Ailk_Bljk_SB_MT64x64x16_SE_K1_TT8_8"
    runs = {}
    for name in (MI210[0], "AMD Instinct MI60", "AMD Radeon Graphics"):
        (folder := tmp_path / name).mkdir()
        runs[name] = busy(kernel, (name, 9, 0), types=["float", "float"]).run(folder)
    unused = fired(runs[MI210[0]], "WB301")
    assert (unused.setting, unused.evidence["generation"]) == ({"precision": "bf16"}, "gfx90a")
    assert "tf32" not in unused.advice.lower()
    without = of(runs["AMD Instinct MI60"], "WB301")
    assert without is not None
    assert "AMD Instinct MI60 has no tensor cores (gfx906)" in without.title
    assert of(runs["AMD Radeon Graphics"], "WB301") is None
    for run in runs.values():
        assert of(run, "WB306") is None, "TF32 is a mode of NVIDIA devices"
        assert "9.0" not in repr(run.findings)


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        (SGEMM, "fp32"),
        (TF32, "tf32"),
        (FP16, "fp16"),
        (NVJET, "bf16"),
        ("nvjet_hsh_64x8_64x16_1x4_h_bz_TNT", "fp16"),
        ("nvjet_sss_128x128_32x6_2x1_v_bz_NNN", "tf32"),
        ("nvjet_qqtst_128x256_128x4_1x2_h_bz_TNT", "fp8"),
        ("cutlass_80_tensorop_s1688gemm_128x128_16x4_nn_align4", "tf32"),
        ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", "fp16"),
        ("ampere_bf16_s16816gemm_bf16_128x64_tn", "bf16"),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x64x8_simt", "fp32"),
        ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128>>", "half"),
        ("Cijk_Ailk_Bljk_BBS_BH_MT128x128x32_MI32x32x8x1", "bf16"),
        ("Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x8x1", "fp16"),
        ("volta_scudnn_128x64_relu_interior_nn_v1", "fp32"),
        ("something_nobody_knows", None),
    ],
)
def test_the_type_in_a_kernels_name(name: str, dtype: str | None) -> None:
    assert kernel_dtype(name) == dtype


def test_the_lowest_type_of_an_operators_inputs_counts() -> None:
    assert operator_dtype('["float", "c10::BFloat16"]') == "bf16"
    assert operator_dtype('["c10::Half"]') == "fp16"
    assert operator_dtype('["float", "Scalar"]') == "fp32"
    assert operator_dtype('["long int"]') is None


def test_wb306_tells_tf32_that_is_off_beside_the_unused_cores(tmp_path: Path) -> None:
    finding = fired(busy(SGEMM, A100).run(tmp_path), "WB306")
    assert finding.evidence["patterns"] == ["tf32_off"]
    assert finding.setting == {"matmul_precision": "high"}, "only products take time here"
    assert finding.severity == "info"


def test_wb306_a_volta_has_no_tf32(tmp_path: Path) -> None:
    assert of(busy(SGEMM, V100).run(tmp_path), "WB306") is None


def small(body: Any) -> Loop:
    return looped(body, 1000)


def test_wb306_a_tensor_made_on_the_host_and_copied_right_after(tmp_path: Path) -> None:
    """Making takes 20 µs and the copy 60, of 1000: from 100 to 190 with what lies between."""

    def body(loop: Loop, at: float) -> None:
        loop.launch(ADD, call=(at + 2, 5), kernel=(at + 10, 900))
        loop.trace.op("aten::zeros", at + 100, 20)
        loop.trace.op("aten::to", at + 130, 60)
        loop.trace.op("aten::_to_copy", at + 132, 56)
        loop.trace.op("aten::copy_", at + 135, 50)
        loop.copy("Memcpy HtoD (Pageable -> Device)", call=(at + 140, 40), copied=(at + 915, 20))

    finding = fired(small(body).run(tmp_path), "WB306")
    assert finding.evidence["patterns"] == ["extra_copies"]
    assert finding.saving_ns_per_step_at_most == 90_000


def test_wb306_copies_of_batches_are_no_waste(tmp_path: Path) -> None:
    def body(loop: Loop, at: float) -> None:
        loop.launch(ADD, call=(at + 2, 5), kernel=(at + 10, 900))
        loop.trace.op("aten::to", at + 130, 60)
        loop.trace.op("aten::_to_copy", at + 132, 56)
        loop.copy("Memcpy HtoD (Pageable -> Device)", call=(at + 140, 40), copied=(at + 915, 20))

    assert of(small(body).run(tmp_path), "WB306") is None


@pytest.mark.parametrize(
    ("bias", "norm", "told"),
    [
        ([64], "aten::batch_norm", True),
        ([], "aten::batch_norm", False),
        ([64], "aten::relu", False),
    ],
)
def test_wb306_a_bias_that_the_norm_takes_away(
    tmp_path: Path, bias: list[int], norm: str, told: bool
) -> None:
    dims = {"Input Dims": [[8, 3, 32, 32], [64, 3, 3, 3], bias, [], [], [], []]}

    def body(loop: Loop, at: float) -> None:
        loop.trace.op("aten::conv2d", at + 100, 100, **dims)
        loop.trace.op("aten::convolution", at + 110, 80)
        loop.trace.op(norm, at + 210, 50)

    finding = of(looped(body, 1000, gpu=False).run(tmp_path), "WB306")
    assert (finding is not None) == told
    if finding is not None:
        assert finding.evidence["patterns"] == ["bias_before_norm"]
        assert finding.saving_ns_per_step_at_most is None, "nothing tells what it costs"


@pytest.mark.parametrize(("inside", "told"), [("aten::zero_", True), ("aten::empty", False)])
def test_wb306_gradients_that_are_zeroed_instead_of_dropped(
    tmp_path: Path, inside: str, told: bool
) -> None:
    def body(loop: Loop, at: float) -> None:
        loop.trace.range("Optimizer.zero_grad#SGD.zero_grad", at + 10, 50)
        for each in range(4):
            loop.trace.op(inside, at + 12 + 10 * each, 8)

    finding = of(looped(body, 1000, gpu=False).run(tmp_path), "WB306")
    assert (finding is not None) == told
    if finding is not None:
        assert finding.setting == {"set_to_none": True}
        assert finding.share_of_window == pytest.approx(0.05)
