"""Every number of other tools is compared, or known to be none of ours."""

from pathlib import Path
from typing import Any

import pytest

from tests.analysis.other_tools.told import expected, told_tools
from workbench.errors import TraceError
from workbench.trace import read

pytestmark = [pytest.mark.slow, pytest.mark.traces]


NO_SUCH_NUMBER = {
    "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum": (
        "Instructions counted inside a kernel are not read: the kernels were replayed to count"
        " them, so that the trace has no time of any kernel to set them against."
    ),
    "sizes_per_time": "Not of a trace: a memory timeline, which the reader refuses by name.",
    "sizes[744]": "As sizes_per_time.",
}
"""What another tool tells and we do not, and why."""

COMPARED = {
    "HTA": {
        *("idle_us", "compute_us", "non_compute_us", "window_us"),
        *("COMPUTATION_sum_us", "kernel launch corr 423", "cpu_dur", "gpu_dur", "launch_delay"),
        *("streams", "stream1 host_wait_us"),
        "aten::mul/customized_fba_mul_const-dtype_Float occurrences",
        *("distinct gpu_user_annotation names", "distinct user_annotation names"),
        *("gpu kernels after HTA step filter", "kernels in Optimizer.step#SGD.step"),
        *("corr 135139", "corr 164926"),
        *("nccl kernels", "first", "collective", "in_msg_nelems", "out_msg_nelems"),
        *("process_group_name", "desc", "ranks"),
        *("cuda_profiler_range events", "5th by ts", "name contains"),
        *("top_level_op", "bottom_level_op"),
        *("first_event_ts_ns", "baseTimeNanoseconds", "absolute start = sum"),
        *("iterations", "base step 1010 cpu events", "gpu events", "added", "deleted"),
        *("durations", "ProfilerStep#1010", "cudaEventQuery"),
        *("cudaLaunchKernel", "nccl:all_reduce"),
    },
    "TraceLens": {
        *("values_ms", "total_time", "busy_time", "idle_time", "computation_time"),
        *("exposed_comm_time", "total_comm_time", "exposed_memcpy_time", "total_memcpy_time"),
    },
    "torch_tb_profiler": {
        *("per_step", "performance", "gpu_metrics", "operators_top10", "kernels_top8"),
        *("name", "calls", "device_self_duration", "device_total_duration"),
        *("host_self_duration", "host_total_duration"),
        *("Name", "Calls", "Tensor Cores Used", "Total Duration (us)", "Mean Duration (us)"),
        *("Max Duration (us)", "Min Duration (us)", "Mean Blocks Per SM"),
        "Mean Est. Achieved Occupancy (%)",
    },
}
"""The keys that the tests above compare; those in ``WHOLE`` with all that is in them."""

WHOLE = {"per_step", "performance", "gpu_metrics"}


def keys(told: Any) -> set[str]:
    """All keys of what is told, but not those inside the ones that are compared as a whole."""
    if isinstance(told, list):
        return {key for each in told for key in keys(each)}
    if not isinstance(told, dict):
        return set()
    inner = (keys(value) for key, value in told.items() if key not in WHOLE | {"differences_us"})
    return set(told).union(*inner)


def test_every_number_of_other_tools_is_compared_or_known_to_be_none_of_ours() -> None:
    """What is new in the file fails here until it has a test, or a reason for having none."""
    about = {"trace", "source", "tool", "note", "values", "explanation", "differences_us"}
    about |= {"agrees_with_reference_metrics_within_1_5us"}
    found = {tool: {key for case in expected(tool) for key in keys(case)} for tool in told_tools()}
    none = set(NO_SUCH_NUMBER)
    entries = [keys(case["values"]) for case in expected("HTA")]
    assert sum(map(len, entries)) == len(set().union(*entries))  # the tests find each by one key
    assert none <= found["HTA"]
    assert {tool: told - about - none for tool, told in found.items()} == COMPARED


def test_the_timeline_of_memory_that_hta_reads_is_refused_by_name(traces_root: Path) -> None:
    (case,) = (each for each in expected("HTA") if "sizes_per_time" in each["values"])
    with pytest.raises(TraceError, match="memory timeline"):
        read(traces_root / case["trace"])
