"""A report is one file, written whole or not at all, and leaves nothing else behind."""

import asyncio
import getpass
import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_args

import psutil
import pytest

from tests.pages.hostile import Page
from tests.reporting import sample
from workbench.errors import (
    MissingExtraError,
    ReportError,
    RunError,
    TimeLimitError,
    WorkbenchError,
)
from workbench.reporting import report
from workbench.reporting.report import is_report
from workbench.run.more import Subject
from workbench.run.source import open_run

ROOT = Path(__file__).parents[2]

slow = pytest.mark.slow


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    source = sample.trace(folder / "loop.json.gz")
    out = folder / "out"
    out.mkdir()
    return report(open_run(source), out / "report.html")


@slow
def test_words_hold_the_verdict_and_the_numbers(written: Path):
    words = Page(written.read_text(encoding="utf-8")).words
    assert "Input-bound" in words
    # Seven steps of 1 ms have a time; in each a kernel runs for 0.5 ms.
    assert "waits 50 % of the step, mostly for data" in words
    assert "sgemm_128x64_nn" in words
    assert "aten::mm" in words


@slow
def test_the_report_is_the_only_file_and_a_small_one(written: Path):
    assert [path.name for path in written.parent.iterdir()] == ["report.html"]
    assert written.stat().st_size < 3_000_000


@slow
def test_the_page_may_not_ask_for_anything(written: Path):
    html = written.read_text(encoding="utf-8")
    assert "default-src 'none'" in html
    assert not re.findall(r"<(?:script|link|img|iframe)[^>]+(?:src|href)\s*=\s*.(?!data:)", html)


@slow
def test_plotly_is_there_once(written: Path):
    assert written.read_text(encoding="utf-8").count('id="wb-plotly"') == 1


@slow
def test_nothing_of_this_machine_is_in_it(written: Path, tmp_path_factory: pytest.TempPathFactory):
    html = written.read_text(encoding="utf-8")
    page = html[: html.index('id="wb-plotly"')]
    places = [tmp_path_factory.getbasetemp(), Path.home(), ROOT, Path(sys.prefix)]
    for secret in [*map(str, places), socket.gethostname()]:
        assert not re.search(rf"(?<!\w){re.escape(secret)}(?!\w)", page), secret
    assert not re.search(rf"\b{re.escape(getpass.getuser())}/", page)


@slow
def test_order_of_the_page(written: Path):
    words = Page(written.read_text(encoding="utf-8")).words
    told = ["a step takes 1.00 ms", "Findings", "mostly for data", "All numbers"]
    told += ["How it was measured", "Not measured: "]
    assert [words.index(text) for text in told] == sorted(words.index(text) for text in told)


@slow
def test_a_baseline_is_compared_from_inside_a_running_event_loop(tmp_path: Path):
    before = sample.measured_run(tmp_path, "before", step_ms=1.7)
    after = sample.measured_run(tmp_path, "after", step_ms=1.2)

    async def cell() -> Path:
        return report(after, tmp_path / "r.html", baseline=before, title="Two <b>runs</b>")

    with ThreadPoolExecutor(1) as other:  # a browser test may have left a loop in this thread
        out = other.submit(lambda: asyncio.run(cell())).result()
    words = Page(out.read_text(encoding="utf-8")).words
    assert "Two <b>runs</b>" in words
    assert "▲ after is faster than before" in words
    assert "A step takes 1.20 ms" in words


@slow
def test_another_run_is_compared_the_other_way_round(tmp_path: Path):
    slower = sample.measured_run(tmp_path, "slower", step_ms=1.7)
    faster = sample.measured_run(tmp_path, "faster", step_ms=1.2)
    words = Page(
        report(slower, tmp_path / "r.html", other=faster).read_text(encoding="utf-8")
    ).words
    assert "A step takes 1.70 ms" in words
    assert "▲ faster is faster than slower" in words


@slow
def test_a_failing_cell_is_named_and_the_notebook_kept(tmp_path: Path, written: Path):
    older = written.read_bytes()
    bad = tmp_path / "bad.json"
    bad.write_text("this is no trace")
    (tmp_path / "report.html").write_bytes(older)
    with pytest.raises(ReportError, match=r"stopped in cell 3 at `.*wb\.open.*` with TraceError"):
        report(bad, tmp_path / "report.html")
    assert (tmp_path / "report.html").read_bytes() == older
    kept = json.loads((tmp_path / "report.failed.ipynb").read_bytes())
    assert any("TraceError" in str(cell.get("outputs")) for cell in kept["cells"])
    assert len(list(tmp_path.iterdir())) == 3


@slow
def test_time_limit_cancels_and_leaves_no_process(tmp_path: Path):
    source = sample.trace(tmp_path / "t.json")
    before = _children()
    with pytest.raises(TimeLimitError, match=r"longer than 0\.5 s .* larger time_limit_s"):
        report(source, tmp_path / "report.html", time_limit_s=0.5)
    assert _children() == before
    assert not (tmp_path / "report.html").exists()


@slow
@pytest.mark.skipif(os.name != "posix", reason="an interrupt is a POSIX signal")
def test_interrupt_leaves_no_process_and_no_file(tmp_path: Path):
    source = sample.trace(tmp_path / "t.json")
    script = textwrap.dedent(f"""
        from workbench.reporting import report
        try:
            report({str(source)!r}, {str(tmp_path / "report.html")!r})
        except KeyboardInterrupt:
            raise SystemExit(42)
    """)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-c", script], env=env, cwd=tmp_path)
    try:
        family = _wait_for_kernel(process.pid)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 42
    finally:
        process.kill()
        process.wait()
    _, alive = psutil.wait_procs(family, timeout=10)
    assert alive == []
    assert [path.name for path in tmp_path.iterdir()] == ["t.json"]


@slow
def test_hostile_names_stay_text_up_to_the_page(tmp_path: Path):
    name = "</script><script>alert(1)</script>"
    source = sample.trace(tmp_path / "a<b>&'.json", kernel=name)
    html = report(source, tmp_path / "r.html").read_text(encoding="utf-8")
    page = Page(html)
    assert name in page.words
    assert "a<b>&'.json" in page.words
    assert name not in html


def test_missing_source_is_said_at_once(tmp_path: Path):
    with pytest.raises(RunError, match="does not exist"):
        report(tmp_path / "nothing.json", tmp_path / "report.html")


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"out": 5}, "out=5 is not a path"),
        ({"out": "a\0.html"}, "is not a path"),
        ({"out": "x" * 300}, "no report can be written"),
        ({"title": 5}, "title=5 must be text"),
        ({"time_limit_s": "5"}, "positive number of seconds"),
        ({"time_limit_s": 0}, "positive number of seconds"),
        ({"baseline": 5}, "5 is neither a Run nor a path"),
        ({"other": "gone.json.gz"}, r"gone\.json\.gz does not exist"),
    ],
)
def test_arguments_are_checked_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any], match: str
):
    monkeypatch.chdir(tmp_path)
    sample.trace(tmp_path / "loop.json.gz")
    with pytest.raises((ReportError, RunError), match=match):
        report("loop.json.gz", **wrong)
    assert [path.name for path in tmp_path.iterdir()] == ["loop.json.gz"]


@pytest.mark.parametrize("out", ["missing/report.html", "folder"])
def test_a_place_that_cannot_be_written_is_refused_before_any_work(
    tmp_path: Path, out: str, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "folder").mkdir()
    source = sample.trace(tmp_path / "t.json")
    monkeypatch.setattr("subprocess.Popen.__init__", _no_process)
    with pytest.raises(ReportError, match="give"):
        report(source, tmp_path / out)


def test_a_file_that_is_no_report_is_left_alone(tmp_path: Path):
    """Somebody's notes, a page of another tool, and the trace itself given as ``out``."""
    source = sample.trace(tmp_path / "t.json")
    held = source.read_bytes()
    other = tmp_path / "report.html"
    other.write_text("<!doctype html><html><head><title>mine</title></head></html>")
    for out in (other, source):
        with pytest.raises(ReportError, match=r"no report of ours.*--out NAME\.html"):
            report(source, out)
    assert "mine" in other.read_text()
    assert source.read_bytes() == held
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "t.json"]


@slow
def test_an_older_report_is_known_and_replaced(written: Path, tmp_path: Path):
    (tmp_path / "empty.html").touch()
    assert is_report(written)
    assert is_report(tmp_path / "empty.html"), "touched by somebody to hold the place"
    assert not is_report(tmp_path)


@pytest.mark.parametrize("package", ["papermill", "nbconvert", "ipykernel"])
def test_missing_package_names_the_extra(
    tmp_path: Path, package: str, monkeypatch: pytest.MonkeyPatch
):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else find(name)
    )
    with pytest.raises(MissingExtraError, match=rf"'{package}'.*torch-workbench\[notebook\]"):
        report(sample.trace(tmp_path / "t.json"), tmp_path / "report.html")


def test_every_error_is_of_the_one_family():
    assert issubclass(ReportError, WorkbenchError)


def _no_process(*_: Any, **__: Any) -> None:
    raise AssertionError("work has begun")


def _children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


def _wait_for_kernel(pid: int) -> list[psutil.Process]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        family = psutil.Process(pid).children(recursive=True)
        if any("ipykernel_launcher" in " ".join(_command(child)) for child in family):
            return family
        time.sleep(0.1)
    raise AssertionError("no kernel was started")


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_the_report_asks_for_every_subject():
    """A Run that had recorded memory had no chart of it in its report."""
    notebook = (ROOT / "notebooks/reports/profile.ipynb").read_text(encoding="utf-8")
    assert [name for name in get_args(Subject) if f'\\"{name}\\"' not in notebook] == []
