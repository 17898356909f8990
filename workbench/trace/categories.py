"""What the category names of every era and vendor mean, as one table.

Names are compared in lower case. Sources: Kineto's ``ActivityType`` names (libkineto), the capital
names of torch 1.8 to 1.11, and the traces of torch_mlu, MTIA, Ascend, Gaudi and XPU builds.
"""

from workbench.trace.table import Kind

KINDS: dict[str, Kind] = {
    # host
    "cpu_op": Kind.OPERATOR,
    "operator": Kind.OPERATOR,
    "user_annotation": Kind.ANNOTATION,
    "python_function": Kind.PYTHON,
    "python": Kind.PYTHON,
    "overhead": Kind.OVERHEAD,
    "trace": Kind.PROFILER,
    "cuda_profiler_range": Kind.PROFILER,
    # calls into a runtime or a driver
    "runtime": Kind.RUNTIME,
    "cuda_runtime": Kind.RUNTIME,
    "hip_runtime": Kind.RUNTIME,
    "xpu_runtime": Kind.RUNTIME,
    "mtia_runtime": Kind.RUNTIME,
    "mlu_runtime": Kind.RUNTIME,
    "npu_runtime": Kind.RUNTIME,
    "hpu_runtime": Kind.RUNTIME,
    "glow_runtime": Kind.RUNTIME,
    "privateuse1_runtime": Kind.RUNTIME,
    "cuda_driver": Kind.DRIVER,
    "hip_driver": Kind.DRIVER,
    "xpu_driver": Kind.DRIVER,
    "privateuse1_driver": Kind.DRIVER,
    # work on a device
    "kernel": Kind.KERNEL,
    "concurrent_kernel": Kind.KERNEL,
    "gpu_kernel": Kind.KERNEL,
    "mlu_kernel": Kind.KERNEL,
    "npu_kernel": Kind.KERNEL,
    "hpu_kernel": Kind.KERNEL,
    "hpu_op": Kind.KERNEL,
    "gpu_memcpy": Kind.MEMCPY,
    "memcpy": Kind.MEMCPY,
    "mlu_memcpy": Kind.MEMCPY,
    "npu_memcpy": Kind.MEMCPY,
    "hpu_memcpy": Kind.MEMCPY,
    "gpu_memset": Kind.MEMSET,
    "memset": Kind.MEMSET,
    "mlu_memset": Kind.MEMSET,
    "npu_memset": Kind.MEMSET,
    "hpu_memset": Kind.MEMSET,
    "gpu_user_annotation": Kind.DEVICE_ANNOTATION,
    "mtia_user_annotation": Kind.DEVICE_ANNOTATION,
    "mlu_user_annotation": Kind.DEVICE_ANNOTATION,
    "cuda_sync": Kind.SYNC,
    "mtia_sync": Kind.SYNC,
    "xpu_sync": Kind.SYNC,
    "collective_comm": Kind.KERNEL,
}

_MTIA_DEVICE = ("mtia_ccp_events", "mtia_workloadd", "mtia_insight")


def kind_of(category: str, name: str, *, on_stream: bool) -> Kind:
    """The common meaning of a file's category; only MTIA needs more than the category.

    MTIA writes kernels and copies into one category: records on a stream are work of the device,
    and DMA requests among them are copies.
    """
    low = category.lower()
    if low in _MTIA_DEVICE:
        if not on_stream:
            return Kind.OTHER
        return Kind.MEMCPY if name.lower().startswith("dma_request") else Kind.KERNEL
    return KINDS.get(low, Kind.OTHER)
