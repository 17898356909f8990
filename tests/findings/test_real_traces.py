"""What every rule says about real traces: what fires, and on healthy ones that nothing does."""

from pathlib import Path

import pytest

import workbench as wb

pytestmark = pytest.mark.slow


HTA = "facebookresearch__HolisticTraceAnalysis/tests__data__"
TRACELENS = "AMD-AGI__TraceLens/tests__traces__"
KINETO = "pytorch__kineto/tb_plugin__samples__resnet50_num_workers_"
RESNET18 = (
    "pytorch__torchrec/examples__golden_training__log__resnet18__"
    "ip-172-31-16-248.us-east-2.compute.internal_"
)
NANOGPT = (
    "KellerJordan__modded-nanogpt/records__track_1_short__2025-12-11_NorMuonOptimsAndFixes__"
    "profiler-example-traces__Baseline_-_12-11_-_"
)

EXPECTED: dict[str, set[str]] = {
    # DDP on a V100, 98 % busy, 870 launches a step into a full queue: healthy, but for half of its
    # device time in volta_sgemm and volta_scudnn, which leave the tensor cores unused.
    HTA + "ns_resolution_trace__rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz": {"WB301"},
    # The same model so small that 75 % of the step is the host's operators; 61 % empty queue.
    HTA + "nccl_parser_config__nccl_data.json.gz": {"WB201"},
    # One step with a single .item() behind 50 µs of work, in a range of Python.
    HTA + "critical_path__cuda_event_sync__event_sync_trace.json.gz": {"WB203", "WB209"},
    # The first step of a process: three quarters of it load kernels, which claims nothing. Two
    # tensors are made on the host and copied at once.
    HTA + "amd_trace__mi250_minitoy_train_ROCm6_2_kineto.json.gz": {"WB306"},
    # 0 workers: 28 % of the window is input; SGD of torch 1.8 updates 161 tensors one by one,
    # 18 ms of host time for 1.3 of device. fp32 on a V100 (torch-tb-profiler advises AMP, too), and
    # zero_grad filled with zeros in that torch.
    KINETO + "0__worker0.1623143089861.pt.trace.json.gz": {"WB101", "WB205", "WB301", "WB306"},
    # 4 workers: input is gone, the optimizer is left; the queue is mostly full (21 % empty).
    KINETO + "4__worker0.1623212756351.pt.trace.json.gz": {"WB205", "WB301", "WB306"},
    # A benchmark of copies: 154 MB a step at 5 GB/s, 13 of 31 ms exposed. It synchronizes after
    # every step and is 99.7 % busy: that wait is ruled out, not blamed.
    "pytorch__benchmark/trace.json.gz": {"WB107", "WB203"},
    # 59 launches in steps of 43 ms, 1 to 7 % busy.
    RESNET18 + "85866.1698107929560561434.pt.trace.json.gz": {"WB201"},
    # A decoder whose tiny kernels and Python take all of the time, recorded with stacks.
    "sidnb13__torch-profiling-tutorial/"
    "log__transformer__dc3b0e7228dd_851.1752215573993169006.pt.trace.json.gz": {
        *("WB201", "WB209", "WB903")
    },
    # 98 % busy on an H100 with compiled regions and variants compiled long before: one rank alone
    # cannot tell its exposed communication from waiting.
    NANOGPT + "220ff-rank6-chrome-trace.json.gz": {"WB401"},
    # The straggler of the same job: 15 % of host operators, but the queue is full otherwise.
    NANOGPT + "6bd4b-rank1-chrome-trace.json.gz": set(),
    # 99 % busy: checkpointed ResNet, exposed communication of one rank alone.
    TRACELENS + "mi300__resnet_act_checkpoint.json.gz": {"WB401"},
    # 463 ms of work that the trace lacks: nothing but that is said.
    TRACELENS + "inference__sglang_decode__sglang_Qwen3-8B_decode.json.gz": {"WB901"},
    # 60 kernels a step, 8 % busy, and a vocabulary of 30 522, no multiple of 8. It is bf16, which
    # cannot help a device that waits; nvjet kernels do use tensor cores.
    TRACELENS + "h100__gaunernst_bert-small-uncased__1016001.json.gz": {
        *("WB201", "WB209", "WB301", "WB303")
    },
    # 197 tokens a picture: an odd number of rows is no misaligned product.
    TRACELENS + "h100__Falconsai_nsfw_image_detection__1016002.json.gz": {
        *("WB201", "WB209", "WB301")
    },
    # 91 % busy; the only wait is the synchronization at the end of the benchmark's one step.
    TRACELENS + "h100__Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": set(),
    # Nothing but start-up: graph capture and warm-up of a server, without steps. Its memory records
    # reach 192.3 of the device's 206.1 GB.
    TRACELENS + "inference__vllm_prefilldecode_piecewise__capture_traces__"
    "graph_capture_rank_0.1773709679453551615.pt.trace.json.gz": {"WB501"},
    # 93 % of the window loads kernels for the first time.
    TRACELENS + "perf_model__normalization__normalization_layer_test.json.gz": set(),
    # Copies of pageable memory and nonzero() leave 2.4 % of a recording without steps idle.
    "pytorch-labs__segment-anything-fast/amg_example__asdf_True.json.gz": {"WB203"},
    # 1.3 s in one cudaLaunchKernel, the first of its name.
    "harryjmoss__particle_transformer/gpu_working_chrome_trace.json.gz": set(),
    # Without steps; 6.7 of 16 s are waiting for batches, beside the loading of kernels.
    "facebookresearch__param/et_replay__tests__inputs__resnet_kineto.json.gz": {"WB101"},
    # One rank that sleeps for a second a step, its queue full otherwise.
    "pytorch__torchrec/examples__golden_training__trace__sst_sleep_pl_dense_after_backward_2__"
    "ip-172-31-16-248.us-east-2.compute.internal_19490.1698954910152757753.pt.trace.json.gz": {
        "WB209"
    },
    # The CPU of a laptop: nothing of a device, no steps.
    "JC-me-coding__dtu_mlops/trace.json.gz": set(),
}


@pytest.mark.traces
@pytest.mark.parametrize("name", EXPECTED)
def test_what_fires_on_a_real_trace(traces_root: Path, name: str) -> None:
    findings = wb.open(traces_root / name).findings
    assert {finding.code for finding in findings} == EXPECTED[name]
    for finding in findings:
        share, speedup = finding.share_of_window, finding.speedup_at_most
        assert share is None or 0 <= share <= 1
        assert speedup is None or speedup >= 1


@pytest.mark.traces
@pytest.mark.parametrize(
    ("name", "target"),
    [
        # Their headers say 9.0, 9.0 and 9.4; hipDeviceProp of an MI250 may give no product's name.
        (TRACELENS + "mi210__gpu_only_trace__gpu_only_trace.json.gz", "gfx90a"),
        (HTA + "amd_trace__mi250_minitoy_train_ROCm6_2_kineto.json.gz", "gfx90X"),
        (TRACELENS + "torch_compile_triton__trace.json.gz", "gfx94X"),
    ],
)
def test_an_amd_device_is_never_told_by_a_compute_capability(
    traces_root: Path, name: str, target: str
) -> None:
    run = wb.open(traces_root / name)
    device = next(each for each in run.trace.devices if each.arch)
    assert (device.type, device.arch) == ("hip", target)
    assert "capability" not in repr(run.findings)
    assert not any("TF32" in finding.title for finding in run.findings)


@pytest.mark.traces
def test_a_job_is_one_list_and_its_headline_the_straggler(
    traces_root: Path, tmp_path: Path
) -> None:
    """Rank 2 sleeps for a second a step; the other three wait in NCCL and in a copy behind it."""
    for trace in (traces_root / "pytorch__torchrec").glob("*sst_sleep*"):
        (tmp_path / trace.name).symlink_to(trace)
    run = wb.open(tmp_path)
    assert [finding.code for finding in run.findings] == ["WB402", "WB209", "WB203"]
    assert run.findings[1].rank == 2, "what makes it late"
    assert run.findings[2].verdict == "no"
    assert len(run.findings[2].evidence["ranks"]) == 3
    assert repr(run).splitlines()[1].startswith("Rank 2 is a straggler")


@pytest.mark.traces
def test_ranks_with_the_same_finding_are_told_together(traces_root: Path, tmp_path: Path) -> None:
    for trace in (traces_root / "pytorch__torchrec").glob("*log__resnet18*"):
        (tmp_path / trace.name).symlink_to(trace)
    finding = wb.open(tmp_path).findings[0]
    assert (finding.code, finding.rank) == ("WB201", None)
    assert finding.title.startswith("On 2 ranks (most on rank 1): Launch-bound")
    assert finding.evidence["ranks"] == ["rank 0 93 %", "rank 1 99 %"]
