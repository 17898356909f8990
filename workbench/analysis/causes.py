"""The causes of idle time, and the names by which host records show them.

The tables are data: to teach a name, add a pattern here and the name to the test's corpus.
"""

import re
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from workbench.trace.table import Kind, Trace

CAUSES: tuple[str, ...] = (
    "kernel_gap",
    "launch",
    "kernel_loading",
    "input",
    "allocation",
    "graph_capture",
    "compilation",
    "profiler",
    "synchronization",
    "garbage_collection",
    "host_operators",
    "host_python",
    "host_other",
    "unknown",
)
"""Every cause of idle time; each nanosecond of it has exactly one."""

CAUSE_CODE: dict[str, int] = {cause: code for code, cause in enumerate(CAUSES)}

HOST_ORDER: tuple[str, ...] = (
    "profiler",
    "kernel_loading",
    "input",
    "allocation",
    "graph_capture",
    "compilation",
    "unknown",
    "synchronization",
    "garbage_collection",
    "host_operators",
    "host_python",
    "host_other",
)
"""What a host record may show, in the order in which the rules are asked: the first one wins."""

CALL_PATTERNS: tuple[tuple[str, str], ...] = (
    ("kernel_loading", r"^(cu|cuda|hip|mu|musa)(Module|Library)Load"),
    (
        "allocation",
        r"^(?!.*(Memcpy|Memset|GetInfo|GetAttribute))[a-zA-Z]+(Malloc|Free($|[A-Z_])|HostAlloc"
        r"|HostRegister|HostUnregister|Mem(Alloc|Free|Create|Release|Map|Unmap|AddressReserve"
        r"|AddressFree|SetAccess|HostAlloc))",
    ),
    ("graph_capture", r"^(cu|cuda|hip|mu|musa)Graph(Instantiate|Upload)"),
    (
        "synchronization",
        r"Synchronize|^(cuda|hip|mu|musa|aclrt|cnrt)Memcpy(2D|3D)?(_v\d+|_ptds)*$"
        r"|^hipMemcpyWithStream$|^(cuda|hip)Memcpy(To|From)Symbol$"
        r"|^(cu|hip)Memcpy(HtoD|DtoH|2D|3D)?(_v\d+|_ptds)*$|^cnrt(Queue)?Sync|^cnSync"
        r"|^cnrtNotifier(Wait|Sync)|^sycl.*wait$",
    ),
)
"""Runtime and driver calls: cause and pattern. Blocking copies of pageable memory are told from
the copies themselves, see ``host_records``."""

CAPTURE_BEGIN = r"StreamBeginCapture"
CAPTURE_END = r"StreamEndCapture"

RANGE_PATTERNS: tuple[tuple[str, str], ...] = (
    ("profiler", r"^workbench\.profiler"),
    ("graph_capture", r"^CUDAGraphNode\.record\b"),
    (
        "compilation",
        r"\(dynamo_timed\)$|^dynamo$|^(entire_frame_compile|backend_compile|inductor_compile)\b"
        r"|^(triton_?compile|async_compile)\b|autotune(?!_cache)|^compile_file\b",
    ),
    ("garbage_collection", r"^workbench\.gc"),
)
"""Operators and ranges: cause and pattern. Compiled code that merely runs
(``Torch-Compiled Region*``, ``CompiledFunction*``) is an operator, not compilation."""

PYTHON_PATTERNS: tuple[tuple[str, str], ...] = (
    (
        "profiler",
        r"^(.*/)?torch/profiler/profiler\.py\(\d+\): "
        r"|^<built-in (function|method) _(en|dis)able_profiler\b|_prepare_profiler\b",
    ),
    ("input", r"^(.*/)?torch/utils/data/dataloader\.py\(\d+\): __next__$"),
    ("graph_capture", r"^(.*/)?torch/_inductor/cudagraph_trees\.py\(\d+\): record(_function)?$"),
    (
        "compilation",
        r"^(.*/)?torch/_dynamo/convert_frame\.py\(\d+\): (_compile|compile_inner|_compile_inner)$"
        r"|^(.*/)?torch/_inductor/compile_fx\.py\(\d+\): \w*compile_fx\w*$"
        r"|^(.*/)?torch/_inductor/runtime/triton_heuristics\.py\(\d+\): "
        r"(autotune_to_one_config|benchmark_all_configs|precompile|_precompile_config)$"
        r"|^(.*/)?triton/compiler/compiler\.py\(\d+\): compile$"
        r"|^(.*/)?triton/runtime/jit\.py\(\d+\): _do_compile$",
    ),
    ("garbage_collection", r"^<built-in (function|method) collect( of module\b.*)?>$|gc\.collect"),
)
"""Python stack records: cause and pattern."""

OVERHEAD_PATTERNS: tuple[tuple[str, str], ...] = (
    ("kernel_loading", r"^Lazy Function Loading$"),
    ("profiler", r""),
)
"""Overhead records. CUPTI counts the driver's lazy loading among them; it is no profiler's cost."""

LAUNCH_PATTERN = (
    r"Launch|^(cuda|hip|mu|musa|cnrt|aclrt)?(cu)?Mem(cpy|set)|^cnInvokeKernel|^runFunction"
)
"""Runtime and driver calls that hand work to a device."""

PAGEABLE_PATTERN = r"pageable"
"""In the name of a copy: it blocks its caller, asynchronous or not."""

LOADER_PATTERN = r"^enumerate\(DataLoader\)"
NODE_PATTERN = r"^autograd::engine::evaluate_function"
OLD_NODE_PATTERN = r"(Backward\d*|AccumulateGrad)$"
OPTIMIZER_PATTERN = r"^Optimizer\."
NO_OPERATOR_PATTERN = (
    r"^ProfilerStep|^enumerate\(DataLoader\)|^DistributedDataParallel\.forward$|^##? |^\[param\|"
)
"""Ranges that older versions write into the category of operators."""

OLD_OPERATOR_PATTERN = (
    r"::|Backward\d*$|^(detach_?|forward|CompiledFunction\w*|_\w+)$|^Optimizer\.|^triton_"
    r"|^Torch-Compiled|^<(forward|backward) op>$|^aclnn"
)
"""What an operator is called in files that do not tell user ranges apart by a category."""


@lru_cache(maxsize=65536)
def call_cause(name: str) -> str | None:
    """What a runtime or driver call of this name shows by itself."""
    return _first(_CALLS, name)


@lru_cache(maxsize=65536)
def range_cause(name: str) -> str | None:
    """What an operator or a range of this name shows beyond being one."""
    return _first(_RANGES, name)


@lru_cache(maxsize=65536)
def python_cause(name: str) -> str | None:
    """What a Python stack record of this name shows beyond being one."""
    return _first(_PYTHON, name)


@lru_cache(maxsize=4096)
def overhead_cause(name: str) -> str:
    """What a record of the profiler's own overhead shows."""
    return _first(_OVERHEAD, name) or "profiler"


def codes_matching(trace: Trace, pattern: str) -> NDArray[np.int32]:
    """Codes of the names in which the pattern is found."""
    return trace.name_codes(lambda name: re.search(pattern, name) is not None)


def operator_rows(trace: Trace) -> NDArray[np.bool_]:
    """Per event row: whether it is a framework operator, or a range of torch's optimizers.

    Steps, loaders and user ranges are none, whichever category their era put them in.
    """
    events = trace.events
    operator = events.kind == Kind.OPERATOR
    ranges = operator & np.isin(events.name, codes_matching(trace, NO_OPERATOR_PATTERN))
    operator &= ~ranges
    if "Operator" in trace.categories or (
        "user_annotation" not in trace.categories and ranges.any()
    ):
        operator &= np.isin(events.name, codes_matching(trace, OLD_OPERATOR_PATTERN))
    optimizer = np.isin(events.name, codes_matching(trace, OPTIMIZER_PATTERN))
    return np.asarray(operator | (optimizer & (events.kind == Kind.ANNOTATION)))


def _compiled(table: tuple[tuple[str, str], ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((cause, re.compile(pattern)) for cause, pattern in table)


def _first(table: tuple[tuple[str, re.Pattern[str]], ...], name: str) -> str | None:
    return next((cause for cause, pattern in table if pattern.search(name)), None)


_CALLS = _compiled(CALL_PATTERNS)
_RANGES = _compiled(RANGE_PATTERNS)
_PYTHON = _compiled(PYTHON_PATTERNS)
_OVERHEAD = _compiled(OVERHEAD_PATTERNS)
