"""``workbench analyze``: documents on stdout, one error line on stderr, an honest exit code."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kineto import Kineto
from tests.run.test_open import gpu_trace

pytestmark = pytest.mark.slow


def workbench(*words: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    code = "from workbench.cli import main; main()"
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env=os.environ | env
    )


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return gpu_trace().write(tmp_path / "t.json.gz")


def test_json_is_one_document_a_line_in_the_documented_schema(trace: Path) -> None:
    done = workbench("analyze", trace, trace, "--json")
    assert done.returncode == 0, done.stderr
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(documents) == 2
    assert documents[0]["schema"] == "workbench.summary/1"
    assert set(documents[0]) == {"schema", "version", "overhead_ratio", "ranks", "findings"}
    assert set(documents[0]["ranks"][0]) == {
        "rank",
        "source",
        "trust",
        "steps",
        "range",
        "samples_per_s",
        "devices",
        "host_breakdown_us",
        "input",
        "launches",
        "kernels",
        "operators",
        "operator_families",
        "straggler",
        "communication",
        "memory",
        "idle_gaps",
        "step_parts",
        "launch_queue",
        "kernel_families",
        "copies",
        "phases",
        "process_groups",
        "critical_path",
        "what_if",
    }


def test_people_get_tables_with_the_finding_first(trace: Path) -> None:
    done = workbench("analyze", trace)
    assert done.returncode == 0, done.stderr
    assert done.stdout.index("WB101") < done.stdout.index("Kernels")


def test_a_line_a_kernel_in_a_narrow_terminal(tmp_path: Path) -> None:
    """A name of 200 characters keeps both its ends, and its numbers stand on the same line."""
    made = gpu_trace()
    for event in made.events:
        if event["name"] == "ampere_sgemm_128x64":
            event["name"] = "void begin::" + "x" * 200 + "::end"
    done = workbench("analyze", made.write(tmp_path / "t.json"), COLUMNS="80")
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("void begin"))
    assert "::end" in line
    assert line.rstrip().endswith("100 %")
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def test_one_step_says_why_it_has_no_median(tmp_path: Path) -> None:
    made = Kineto(gpu=True)
    made.step(0, 0, 100)
    made.op("aten::mm", 5, 10)
    made.launched("k", call=(10, 4), kernel=(20, 40), correlation=1)
    done = workbench("analyze", made.write(tmp_path / "t.json"))
    assert "a time from completion to completion needs two" in " ".join(done.stdout.split())


def test_fail_on_turns_a_finding_into_exit_code_1(trace: Path) -> None:
    """Two step times allow a warning (30 % waiting), never a critical verdict."""
    assert workbench("analyze", trace, "--fail-on", "warning").returncode == 1
    assert workbench("analyze", trace, "--fail-on", "critical").returncode == 0


def test_what_cannot_be_read_is_one_line_and_exit_code_2(tmp_path: Path, trace: Path) -> None:
    broken = tmp_path / "broken.json"
    broken.write_text("hello")
    done = workbench("analyze", broken, trace, "--json")
    assert done.returncode == 2
    assert len(done.stdout.splitlines()) == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("workbench: ")


def test_a_name_that_tries_to_be_markup_or_a_control_code_stays_text(tmp_path: Path) -> None:
    made = gpu_trace()
    made.op("[red]x[/red]\x1b[2J", 1141, 2)
    done = workbench("analyze", made.write(tmp_path / "t.json"))
    assert done.returncode == 0, done.stderr
    assert "\x1b[2J" not in done.stdout
    assert "[red]x[/red]" in done.stdout


def test_traces_that_are_ranks_of_one_job_are_one_document(tmp_path: Path, trace: Path) -> None:
    paths = []
    for rank in (0, 1):
        made = gpu_trace()
        made.header["distributedInfo"] = {"rank": rank, "world_size": 2, "backend": "nccl"}
        paths.append(made.write(tmp_path / f"worker{rank}.json"))
    together = workbench("analyze", *paths, "--json").stdout.splitlines()
    assert [[rank["rank"] for rank in json.loads(line)["ranks"]] for line in together] == [[0, 1]]
    apart = workbench("analyze", *paths, trace, "--json").stdout.splitlines()
    assert [len(json.loads(line)["ranks"]) for line in apart] == [1, 1, 1]


def test_a_device_without_a_record_is_not_measured_and_no_all_clear(tmp_path: Path) -> None:
    made = Kineto(gpu=True)
    made.step(0, 0, 100)
    made.op("aten::mm", 10, 80)
    made.runtime("cudaLaunchKernel", 12, 3, correlation=1)
    shown = workbench("analyze", made.write(tmp_path / "t.json")).stdout
    assert re.search(r"^device +not measured", shown, re.MULTILINE)
    assert "Cannot tell what limits" in shown
    assert "No finding" not in shown
    assert "100 %" not in shown.partition("Where the loop")[0]


def test_a_fault_of_our_own_is_not_taken_for_findings(trace: Path) -> None:
    code = (
        "import workbench.run.source as s; s.open_run = None\n"
        f"import sys; sys.argv = ['workbench', 'analyze', {str(trace)!r}]\n"
        "from workbench.cli import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert "fault of workbench" in done.stderr


def test_that_nothing_fires_is_said_once_and_no_line_ends_in_blanks(tmp_path: Path) -> None:
    """Three steps that compute from end to end on the CPU: there is nothing to advise."""
    made = Kineto()
    for number in range(3):
        made.step(number, 100 * number, 100)
        made.op("aten::mm", 100 * number, 100)
    shown = workbench("analyze", made.write(tmp_path / "t.json")).stdout
    assert shown.count("No rule") == 1
    assert "No finding" not in shown
    assert [line for line in shown.split("\n") if line != line.rstrip(" ")] == []
