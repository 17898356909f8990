"""``workbench compare`` and ``workbench doctor``: documents for machines, words for people."""

import json
from pathlib import Path

import pytest

from tests.cli.test_analyze import workbench
from tests.run.test_compare import measured
from tests.run.test_open import gpu_trace

pytestmark = pytest.mark.slow


def test_compare_prints_its_document(tmp_path: Path) -> None:
    first = measured(tmp_path, "first", step_ms=100)
    second = measured(tmp_path, "second", step_ms=50)
    done = workbench("compare", first, second, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["schema"] == "workbench.compare/1"
    assert document["verdict"] == "faster"
    assert document["median_us"]["first"] > 1.8 * document["median_us"]["second"]


def test_two_traces_are_compared_without_a_verdict(tmp_path: Path) -> None:
    trace = gpu_trace().write(tmp_path / "t.json")
    done = workbench("compare", trace, trace)
    assert done.returncode == 0, done.stderr
    assert "cannot tell: both traces have no step times of record" in " ".join(done.stdout.split())
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_what_is_no_trace_ends_in_one_sentence(tmp_path: Path) -> None:
    trace = gpu_trace().write(tmp_path / "t.json")
    (tmp_path / "notes.txt").write_text("hello")
    for bad in (tmp_path / "notes.txt", tmp_path / "gone.json"):
        done = workbench("compare", trace, bad)
        assert done.returncode == 2
        assert done.stderr.startswith("workbench: ")
        assert "Traceback" not in done.stderr


def test_doctor_prints_checks_a_machine_can_read() -> None:
    done = workbench("doctor", "--json")
    assert done.returncode in (0, 1), done.stderr
    document = json.loads(done.stdout)
    assert document["schema"] == "workbench.doctor/1"
    assert {row["state"] for row in document["checks"]} <= {"ok", "warning", "problem"}
    assert all(row["remedy"] for row in document["checks"] if row["state"] == "problem")
    dtypes = {each["dtype"]: each for each in document["dtypes"]["cpu"]}
    assert dtypes["fp32"]["matmul_ratio"] == 1.0
    assert dtypes["fp8"].keys() >= {"supported", "native", "convolution_ratio", "reason"}


def test_help_names_every_verb() -> None:
    done = workbench("--help")
    for verb in ("analyze", "report", "compare", "demo", "lab", "doctor"):
        assert verb in done.stdout
