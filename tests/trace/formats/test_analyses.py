"""The analyses know no formats: ``workbench analyze`` on files that torch never wrote."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.trace.formats.nsight_export import call, export, kernel, nvtx, strings
from tests.trace.formats.test_rocprofv3 import WHOLE, document
from tests.trace.formats.test_xplane import gpu_step
from tests.trace.formats.xspace import space

LANES = """\
lane,kind,name,start_us,duration_us,correlation
main,annotation,ProfilerStep#0,0,100,
main,runtime,enqueue,5,5,1
npu0/core,kernel,layer,20,30,1
main,annotation,ProfilerStep#1,100,100,
main,runtime,enqueue,105,5,2
main,runtime,enqueue,150,5,3
npu0/core,kernel,layer,120,30,2
npu0/dma,memcpy,output,160,10,3
"""


def analyze(path: Path) -> dict[str, Any]:
    code = "from workbench.cli import main; main()"
    command = [sys.executable, "-c", code, "analyze", str(path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_lane_file_has_steps_device_time_and_causes(tmp_path: Path) -> None:
    path = tmp_path / "npu.csv"
    path.write_text(LANES)
    (rank,) = analyze(path)["ranks"]
    # Step 0 completes with its kernel at 50, step 1 with its copy at 170: 120 us.
    assert rank["steps"]["time_us"]["mean"] == 120
    (device,) = rank["devices"]
    assert (device["type"], device["name"]) == ("npu", "npu0")
    # Work 20-50, 120-150 and 160-170: from 20 to 170 that leaves two gaps, 70 + 10 us.
    time = device["window"]["time"]
    assert (time["span_us"], time["busy_us"], time["idle_us"]) == (150, 70, 80)
    assert (time["compute_us"], time["memory_us"]) == (60, 10)
    assert sum(cause or 0 for cause in device["window"]["idle"]["by_cause"].values()) == 80


@pytest.mark.slow
def test_every_format_through_the_command_line(tmp_path: Path) -> None:
    files = {
        "profile.xplane.pb": space(*gpu_step()),
        "results.json": document(WHOLE),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    export(
        tmp_path / "report.sqlite",
        StringIds=strings("cudaLaunchKernel", "gemm"),
        CUPTI_ACTIVITY_KIND_RUNTIME=[call(1, 100, 120, 1)],
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(2, 150, 190, 1)],
        NVTX_EVENTS=[nvtx("aten::mm, seq = 1", 90, 130)],
    )
    for path in sorted(tmp_path.iterdir()):
        (rank,) = analyze(path)["ranks"]
        assert rank["devices"][0]["recording"]["time"]["busy_us"] > 0, path.name
        assert rank["kernels"], path.name
        assert rank["source"] == path.name
