"""Categories of every era and vendor, and what the devices are."""

import json
from typing import Any

import pytest

from tests.kineto import Kineto
from workbench import trace
from workbench.trace.table import DEVICE_WORK, Kind, Trace


def read(*events: dict[str, Any], **header: Any) -> Trace:
    return trace.read(json.dumps({**header, "traceEvents": list(events)}).encode())


def x(cat: str, name: str = "k", pid: Any = 0, **args: Any) -> dict[str, Any]:
    made = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": 1, "ts": 1, "dur": 1}
    return made | {"args": args}


@pytest.mark.parametrize(
    ("category", "kind"),
    [
        ("Operator", Kind.OPERATOR),
        ("Kernel", Kind.KERNEL),
        ("Runtime", Kind.RUNTIME),
        ("Memcpy", Kind.MEMCPY),
        ("Memset", Kind.MEMSET),
        ("cpu_op", Kind.OPERATOR),
        ("user_annotation", Kind.ANNOTATION),
        ("gpu_user_annotation", Kind.DEVICE_ANNOTATION),
        ("cuda_runtime", Kind.RUNTIME),
        ("cuda_driver", Kind.DRIVER),
        ("concurrent_kernel", Kind.KERNEL),
        ("gpu_memcpy", Kind.MEMCPY),
        ("cuda_sync", Kind.SYNC),
        ("overhead", Kind.OVERHEAD),
        ("Trace", Kind.PROFILER),
        ("hip_runtime", Kind.RUNTIME),
        ("xpu_runtime", Kind.RUNTIME),
        ("xpu_driver", Kind.DRIVER),
        ("mtia_runtime", Kind.RUNTIME),
        ("mlu_runtime", Kind.RUNTIME),
        ("mlu_memcpy", Kind.MEMCPY),
        ("privateuse1_runtime", Kind.RUNTIME),
        ("something new", Kind.OTHER),
        ("", Kind.OTHER),
    ],
)
def test_categories(category: str, kind: Kind) -> None:
    assert read(x(category)).events.kind.tolist() == [kind]


def test_synchronization_on_a_device_track_is_no_work() -> None:
    made = Kineto(gpu=True)
    made.kernel("gemm", 0, 10)
    made.kernel("Stream Sync", 10, 90, cat="cuda_sync")
    events = trace.read(json.dumps(made.document()).encode()).events
    assert len(events.rows(*DEVICE_WORK)) == 1


def test_mtia_records_on_a_stream_are_work_and_dma_requests_are_copies() -> None:
    found = read(
        x("mtia_ccp_events", "add-dtype_Float", pid=9, stream=1, correlation=5),
        x("mtia_ccp_events", "dma_request", pid=9, stream=102, size=1852),
        x("mtia_ccp_events", "dma_request", pid=9, size=16),
    )
    assert found.events.kind.tolist() == [Kind.KERNEL, Kind.MEMCPY, Kind.OTHER]
    assert found.events.bytes.tolist() == [-1, 1852, 16]
    assert found.events.device.tolist() == [0, 0, -1]
    assert [device.type for device in found.devices] == ["mtia"]


def test_records_of_the_ascend_process_are_device_work() -> None:
    label = {"ph": "M", "name": "process_name", "pid": 800, "args": {"name": "Ascend Hardware"}}
    work = x("", "aclnnMm", pid=800, **{"Stream Id": 3, "connection_id": 8})
    del work["cat"]
    found = read(label, work, x("cpu_op", "aten::mm", pid=1))
    assert found.events.kind.tolist() == [Kind.OPERATOR, Kind.KERNEL]
    assert (found.events.stream[1], found.events.correlation[1]) == (3, 8)
    assert [device.type for device in found.devices] == ["npu"]


def test_the_exporter_before_kineto_tells_work_by_its_process() -> None:
    text = json.dumps([x("", pid="CPU functions"), x("", pid="CUDA functions")]).encode()
    assert trace.read(text).events.kind.tolist() == [Kind.OPERATOR, Kind.KERNEL]


def test_records_of_torch_1_8_spell_their_arguments_differently() -> None:
    operator = x("Operator", "aten::mm", **{"Input dims": [[2, 3]], "External id": 4})
    call = x("Runtime", "cudaLaunchKernel", correlation=9, **{"external id": 4})
    found = read(operator, call)
    assert found.events.external_id.tolist() == [4, 4]
    assert found.shapes[found.events.shapes[0]] == "[[2,3]]"


@pytest.mark.parametrize(
    ("name", "kind", "arch"),
    [
        ("NVIDIA A100-SXM4-40GB", "cuda", "9.0"),
        ("Tesla V100-DGXS-32GB", "cuda", "9.0"),
        # AMD's 9.0 is no compute capability: MI200 are gfx90a, a nameless one could be others.
        ("AMD Instinct MI210", "hip", "gfx90a"),
        ("AMD Radeon Graphics", "hip", "gfx90X"),
        ("Intel(R) Data Center GPU Max 1550", "xpu", "9.0"),
        ("MLU370", "mlu", "9.0"),
        ("Ascend910B2", "npu", "9.0"),
        ("HL-225", "hpu", "9.0"),
        ("MTIA", "mtia", "9.0"),
        ("an unheard-of chip", "other", "9.0"),
    ],
)
def test_a_device_is_what_its_name_says(name: str, kind: str, arch: str) -> None:
    properties = [{"id": 3, "name": name, "totalGlobalMem": 1024, "computeMajor": 9}]
    (device,) = read(x("kernel", device=3), deviceProperties=properties).devices
    assert (device.index, device.type, device.name) == (3, kind, name)
    assert (device.memory_bytes, device.arch) == (1024, arch)


def test_nameless_devices_take_their_type_from_the_header() -> None:
    found = read(
        x("kernel", device=0),
        deviceProperties=[{"id": 0, "name": ""}, {"id": 1, "name": ""}],
        roctracer_version="4.1",
    )
    assert [device.type for device in found.devices] == ["hip", "hip"]


def test_devices_that_only_the_events_know_are_listed() -> None:
    found = read(x("kernel", device=0), x("kernel", device=2))
    assert [(device.index, device.name) for device in found.devices] == [(0, ""), (2, "")]


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["AMD Instinct MI300X VF"], "AMD Instinct MI300X VF"),
        (["AMD Instinct MI300X", "AMD Instinct MI300X"], "AMD Instinct MI300X"),
        (["AMD Instinct MI300X", "AMD Instinct MI210"], ""),
        (["NVIDIA A100-SXM4-40GB"], ""),
    ],
)
def test_the_agent_of_a_rocm_trace_is_like_the_devices_of_its_header(
    names: list[str], told: str
) -> None:
    """With two processors, which are agents too, the first GPU is agent 2."""
    properties = [{"id": number, "name": name} for number, name in enumerate(names)]
    found = read(x("kernel", device=7), deviceProperties=properties).devices
    assert (found[-1].index, found[-1].name) == (7, told)


@pytest.mark.parametrize(
    ("category", "name", "kind"),
    [
        ("cuda_runtime", "cudaLaunchKernel", "cuda"),
        ("cuda_runtime", "hipLaunchKernel", "hip"),
        ("cuda_driver", "cuLaunchKernelEx", "cuda"),
        ("kernel", "Cijk_Ailk_Bljk_SB_MT64x64x8", "hip"),
        ("kernel", "__amd_rocclr_copyBuffer", "hip"),
        ("kernel", "volta_sgemm_64x64_nn", "cuda"),
        ("kernel", "void at::native::xpu::VectorizedKernel<4>", "xpu"),
        ("runtime", "urEnqueueKernelLaunch", "xpu"),
        ("runtime", "zeCommandListAppendLaunchKernel", "xpu"),
        ("runtime", "aclrtLaunchKernel", "npu"),
        ("runtime", "cnrtMemcpyAsync", "mlu"),
        ("cuda_sync", "Stream Sync", "cuda"),
        # Nothing in these belongs to one vendor.
        ("kernel", "gemm_kernel", "other"),
        ("kernel", "triton_poi_fused_add_0", "other"),
        ("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "other"),
    ],
)
def test_devices_without_a_name_are_what_calls_and_kernels_say(
    category: str, name: str, kind: str
) -> None:
    found = read(x("kernel", "gemm_kernel", device=0), x(category, name, device=0))
    assert [device.type for device in found.devices] == [kind]


def test_a_python_function_about_cuda_is_no_evidence() -> None:
    found = read(
        x("kernel", "gemm_kernel", device=0),
        x("python_function", "torch/cuda/__init__.py(9): synchronize"),
        x("cpu_op", "cudaish"),
    )
    assert [device.type for device in found.devices] == ["other"]
