"""``workbench compare`` and ``workbench doctor``: documents for machines, words for people."""

import json
from pathlib import Path

from tests.cli.test_analyze import workbench
from tests.run.test_compare import measured


def test_compare_prints_its_document(tmp_path: Path) -> None:
    first = measured(tmp_path, "first", step_ms=100)
    second = measured(tmp_path, "second", step_ms=50)
    done = workbench("compare", first, second, "--json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["schema"] == "workbench.compare/1"
    assert document["verdict"] == "faster"
    assert document["median_us"]["first"] > 1.8 * document["median_us"]["second"]


def test_a_trace_without_steps_of_record_cannot_be_compared(tmp_path: Path) -> None:
    from tests.run.test_open import gpu_trace

    trace = gpu_trace().write(tmp_path / "t.json")
    done = workbench("compare", trace, trace)
    assert done.returncode == 2
    assert "profiled times are not real step times" in done.stderr


def test_doctor_prints_checks_a_machine_can_read() -> None:
    done = workbench("doctor", "--json")
    assert done.returncode in (0, 1), done.stderr
    document = json.loads(done.stdout)
    assert document["schema"] == "workbench.doctor/1"
    assert {row["state"] for row in document["checks"]} <= {"ok", "warning", "problem"}
    assert all(row["remedy"] for row in document["checks"] if row["state"] == "problem")


def test_help_names_every_verb() -> None:
    done = workbench("--help")
    for verb in ("analyze", "report", "compare", "demo", "lab", "doctor"):
        assert verb in done.stdout
