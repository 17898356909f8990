"""The pytest fixture, in a pytest of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEST = """
import os, time
import torch
import workbench as wb

def step(model, batch):
    time.sleep(float(os.environ["SECONDS"]))
    return model(batch).sum()

def test_step(workbench_gate):
    torch.set_num_threads(1)
    data = [torch.ones(2, 4) for _ in range(8)]
    found = workbench_gate(wb.Workload(torch.nn.Linear(4, 4), data, step=step), steps=16)
    assert found is None or found.verdict == "pass"
"""


def run_pytest(at: Path, *options: str, seconds: float = 0.002) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-p", "workbench.pytest_plugin", "-rs", "-q"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SECONDS": str(seconds)}
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", *options],
        cwd=at,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_mine.py").write_text(TEST)
    return tmp_path


@pytest.mark.slow
def test_without_a_baseline_it_skips_and_says_how_to_record(project: Path):
    code, said = run_pytest(project)
    assert code == 0
    assert "1 skipped" in said
    assert "--workbench-record" in said
    code, said = run_pytest(project, "--workbench-strict")
    assert code == 1
    assert "there is no baseline" in said


@pytest.mark.slow
def test_a_baseline_is_recorded_and_a_slower_loop_fails(project: Path):
    """From 2 ms of sleep to 40: no load makes a step shorter than its sleep.

    Of 32 steps enough are left, whatever is taken for warm-up.
    """
    code, said = run_pytest(project, "--workbench-record")
    assert code == 0, said
    (kept,) = (project / ".workbench-baselines").iterdir()
    assert kept.name == "test_mine.py-test_step"
    assert (kept / "run.json").is_file()
    assert not list(kept.glob("*.arrow"))
    code, said = run_pytest(project, seconds=0.04)
    assert code == 1, said
    assert "✗ fail" in said
    assert "step time" in said


def test_baselines_of_two_tests_never_share_a_folder():
    from workbench.pytest_plugin import _file_name

    assert _file_name("tests/test_a.py::test_step") == "tests-test_a.py-test_step"
    asked = ("a b", "a-b", "a/b", "x" * 200, "y" + "x" * 199)
    names = [_file_name(f"test_a.py::test_step[{each}]") for each in asked]
    assert len(set(names)) == len(names)
    assert all("/" not in name and len(name) < 200 for name in names)


def test_it_costs_nothing_when_nobody_asks_for_it():
    code = (
        "import sys, workbench.pytest_plugin as plugin\n"
        "heavy = {'torch', 'numpy', 'pandas', 'scipy', 'plotly', 'workbench.gate'}\n"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
