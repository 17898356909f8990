"""What the category names of every era and vendor mean, as one table.

Names are compared in lower case. Sources: Kineto's ``ActivityType`` names (libkineto), the capital
names of torch 1.8 to 1.11, and the traces of torch_mlu, MTIA, Ascend, Gaudi and XPU builds.
"""

from enum import IntEnum

from workbench.trace.table import Kind


class Group(IntEnum):
    """Which arguments records of a category carry; see ``arguments.PLAN``."""

    PYTHON = 0
    HOST = 1
    CALL = 2
    DEVICE = 3
    ANY = 4
    """Unknown or older than torch 1.12: look for every argument under every spelling."""


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

USUAL = (
    *KINDS,
    *("Operator", "Runtime", "Kernel", "Memcpy", "Memset", "Trace"),
    *("ac2g", "fwdbwd", "async", "async_gpu", "async_cpu_to_gpu", "cpu_instant_event", ""),
)
"""Categories as torch spells them: no text is made of them, one object stands for each."""

BY_NAME = ("mtia_ccp_events",)
"""Categories that mix kernels and copies: the name and the stream decide."""

KINDS_BY_PROCESS: dict[str, Kind] = {
    "CPU functions": Kind.OPERATOR,
    "CUDA functions": Kind.KERNEL,
    "Ascend Hardware": Kind.KERNEL,
}
"""What records without a known category are, by the name (or pid) of their process: the exporter
of torch before 1.8, and Ascend's msprof."""


_GROUPS = {
    Kind.PYTHON: Group.PYTHON,
    Kind.OPERATOR: Group.HOST,
    Kind.ANNOTATION: Group.HOST,
    Kind.RUNTIME: Group.CALL,
    Kind.DRIVER: Group.CALL,
}


def group_of(category: str) -> Group:
    """Which arguments to look for, by the exact name that torch gives the category today."""
    kind = KINDS.get(category)
    return Group.ANY if kind is None else _GROUPS.get(kind, Group.DEVICE)
