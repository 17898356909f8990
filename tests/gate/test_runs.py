"""The gate over Runs on disk, from the command line to its files."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest
from typer.testing import CliRunner

from tests.reporting import sample
from workbench.cli import app
from workbench.errors import GateError
from workbench.gate import gate
from workbench.gate.fingerprint import fingerprint
from workbench.store.folder import read_record
from workbench.store.record import RECORD_NAME, encode

HERE = {"system": "Linux x86_64", "processor": "A", "usable_cpus": 8, "torch": "2.13.0"}


@pytest.fixture
def runs(tmp_path: Path) -> tuple[Path, Path]:
    """A loop of 10 ms, and one of 12 ms that launches the same kernels."""
    return (
        sample.measured_run(tmp_path, "before", step_ms=10.0),
        sample.measured_run(tmp_path, "later", step_ms=12.0),
    )


def told(*arguments: Any) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["gate", *map(str, arguments)])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


def of(document: dict[str, Any], metric: str) -> dict[str, Any]:
    return next(each for each in document["metrics"] if each["metric"] == metric)


def changed(run: Path, **fields: Any) -> None:
    record = msgspec.structs.replace(read_record(run), **fields)
    (run / RECORD_NAME).write_bytes(encode(record))


def test_a_slower_head_exits_with_1_and_writes_its_files(runs: tuple[Path, Path], tmp_path: Path):
    out = tmp_path / "out"
    code, text = told("--base", runs[0], "--head", runs[1], "--out", out)
    assert code == 1
    assert text.startswith("✗ fail: step_time +")
    found = json.loads((out / "gate.json").read_bytes())
    assert found["schema"] == "workbench.gate/1"
    assert (found["verdict"], found["exit_code"]) == ("fail", 1)
    step = of(found, "step_time")
    assert step["change"] == pytest.approx(0.2, abs=0.02)
    assert step["low"] < 0.2 < step["high"]
    # One kernel and one operator a step in the trace of either.
    assert of(found, "kernels_per_step")["head"] == of(found, "operators_per_step")["base"] == 1
    assert of(found, "kernels_per_step")["verdict"] == "pass"
    suite = ElementTree.fromstring((out / "junit.xml").read_bytes())[0]
    failing = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failing == ["step_time"]
    assert suite.get("failures") == "1"
    assert "| ✗ FAIL | step time | 10" in (out / "summary.md").read_text()
    assert sorted(p.name for p in out.iterdir()) == [
        "gate.html",
        "gate.json",
        "junit.xml",
        "summary.md",
    ]


def test_the_same_run_twice_passes_and_json_is_one_document(runs: tuple[Path, Path]):
    code, text = told("--base", runs[0], "--head", runs[0], "--json")
    assert code == 0
    assert json.loads(text)["verdict"] == "pass"


def test_what_the_wait_for_data_is_a_share_of(runs: tuple[Path, Path]):
    """The trace waits 0.4 ms of each 1 ms for data, on both sides alike."""
    found = gate(runs[0], runs[1]).to_json()
    wait = of(found, "exposed_input")
    assert wait["base"] == wait["head"] == pytest.approx(400_000, rel=0.15)
    assert wait["verdict"] == "pass"


def test_another_machine_is_refused_with_what_to_do(runs: tuple[Path, Path]):
    changed(runs[0], environment=HERE)
    changed(runs[1], environment=HERE | {"processor": "B"})
    code, text = told("--base", runs[0], "--head", runs[1])
    assert code == 2
    assert "processor: A → B" in text
    assert "--measure-both" in text
    code, text = told("--base", runs[0], "--head", runs[1], "--counters-only")
    assert code == 0
    assert "step time" not in text


def test_other_versions_are_told_and_judged(runs: tuple[Path, Path]):
    changed(runs[0], environment=HERE)
    changed(runs[1], environment=HERE | {"torch": "2.14.0"})
    code, text = told("--base", runs[0], "--head", runs[1])
    assert code == 1
    assert "versions differ: torch: 2.13.0 → 2.14.0" in text


def test_a_fingerprint_knows_machines_and_no_people():
    assert fingerprint(HERE) == fingerprint(HERE | {"torch": "9", "load": 3})
    assert fingerprint(HERE) != fingerprint(HERE | {"usable_cpus": 4})
    assert fingerprint({}) is None


def test_a_folder_of_runs_is_several_workloads_matched_by_name(tmp_path: Path):
    for where, ms in (("base", 10.0), ("head", 13.0)):
        (tmp_path / where).mkdir()
        sample.measured_run(tmp_path / where, "steady", step_ms=10.0)
        sample.measured_run(tmp_path / where, "grows", step_ms=ms)
    found = gate(tmp_path / "base", tmp_path / "head")
    assert [each.key for each in found.failed] == ["grows: step_time"]


def test_traces_alone_gate_by_what_they_count_and_cannot_tell_times(tmp_path: Path):
    source = sample.trace(tmp_path / "t.json")
    code, text = told("--base", source, "--head", source, "--strict")
    assert code == 3
    assert "no step times of record" in text
    assert told("--base", source, "--head", source)[0] == 0


def test_a_budget_file_names_limits(runs: tuple[Path, Path], tmp_path: Path):
    budget = tmp_path / "budget.toml"
    budget.write_text('[step_time]\nat_most = "11 ms"\n[gate]\nlevel = 0.05\n')
    assert told("--head", runs[0], "--budget", budget)[0] == 0
    code, text = told("--head", runs[1], "--budget", budget)
    assert code == 1
    assert "11.0 ms" in text


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("step_time = 5", r"step_time must be a table"),
        ("[speed]\nallow = 1", "no metric is called speed; there are step_time"),
        ("[step_time]\nallow = 'much'", "must be a share"),
        ("[step_time]\nat_most = '12 MB'", r"number with a unit \(ns, us, µs, ms, s\)"),
        ("[step_time]\nmost = 1", "has no 'most'; there are allow"),
        ("[gate]\nlevel = 2", "between 0 and 0.5"),
        ("[", "is no TOML"),
    ],
)
def test_a_budget_that_nobody_can_judge_says_what_is_wrong(tmp_path: Path, text: str, match: str):
    budget = tmp_path / "budget.toml"
    budget.write_text(text)
    with pytest.raises(GateError, match=match):
        gate(head="x", budget=budget)


def test_check_raises_a_plain_error_with_the_table(runs: tuple[Path, Path]):
    with pytest.raises(GateError, match=r"step time .* 12"):
        gate(runs[0], runs[1]).check()
    gate(runs[0], runs[0]).check(strict=True)


def test_names_of_others_stay_text_in_markdown_and_xml(tmp_path: Path):
    for where, ms in (("base", 10.0), ("head", 13.0)):
        (tmp_path / where).mkdir()
        made = sample.measured_run(tmp_path / where, "x", step_ms=ms)
        made.rename(made.with_name("a|b<script>"))
        sample.measured_run(tmp_path / where, "y", step_ms=10.0)
    out = gate(tmp_path / "base", tmp_path / "head").write(tmp_path / "out")
    assert "a\\|b&lt;script&gt;" in (out / "summary.md").read_text()
    suite = ElementTree.fromstring((out / "junit.xml").read_bytes())[0]
    assert "a|b<script>" in {case.get("classname") for case in suite}
