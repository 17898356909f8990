"""Where nobody can click: the still page, and a loop that is only looked at."""

import re
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import workbench as wb
from tests.widgets.kernel import FINDING, Kernel
from tests.widgets.standin import change, done, effect, recorded, train
from workbench.errors import SettingError
from workbench.settings import Settings
from workbench.widgets.panel.mode import chosen_mode
from workbench.widgets.panel.static import static_html, static_text


def trained(folder: Path) -> Kernel:
    kernel = Kernel(folder)
    train(kernel.session, 100)
    settings = Settings(workers=2)
    told = {"effect": effect(0.5, 0.48, 0.53), "before_ns": 20e6, "after_ns": 10e6}
    kernel.session.changes = (
        change(1, 100, Settings(), settings, note="the epoch began anew", **told),
    )
    train(kernel.session, 100, first=100, step_ms=10)
    kernel.session.become(status="stopped", settings=settings)
    run = recorded("<b>burst</b>")
    kernel.session.become(bursts=(done(run, FINDING),))
    return kernel


def test_the_still_page_holds_verdict_findings_charts_changes_and_settings(tmp_path: Path):
    html = static_html(trained(tmp_path).desk)
    text = re.sub(r"<style>.*?</style>|<[^>]+>", " ", html, flags=re.DOTALL)

    assert "waiting for data" in text
    assert "The step waits for data" in text
    assert "workers as yours → 2" in text
    assert "▲ 50 % (47–52) less time" in text
    assert html.count("<svg") == 2
    assert 'role="img" aria-label="Step times of 200 steps' in html
    assert "<b>burst" not in html
    assert "<script" not in html
    assert len(html) < 60_000  # a saved notebook with twenty of them stays below 5 MB


def test_the_still_page_speaks_of_the_settings_in_force(tmp_path: Path):
    kernel = trained(tmp_path)
    text = static_text(kernel.desk)
    html = static_html(kernel.desk)

    # 100 steps of 20 ms, then 100 of 10 ms with the switch: the median of all would be near 15.
    assert re.match(r"A step of digits takes (9\.\d|10\.\d) ms since change 1, median", text)
    # Parts are means, and sum to the mean step: which of the two a number is stands beside it.
    assert re.search(r"parts of the mean step, (9\.\d|10\.\d) ms together, not of the", text)
    assert "Recorded under other settings (as yours) than those in force now (workers 2)" in html
    assert "the epoch began anew" in html
    undone = change(2, 200, Settings(workers=2), Settings())
    kernel.session.changes = (*kernel.session.changes, undone)
    assert "ms under the settings of change 1, " in static_text(kernel.desk)


def test_what_was_not_measured_is_said_in_the_still_page(tmp_path: Path):
    kernel = Kernel(tmp_path)
    kernel.session.telemetry.plant(step=0, at_ns=5e9, step_ns=2e7, input_ns=float("nan"))

    assert "not measured" in static_text(kernel.desk)


def test_a_still_panel_carries_no_widget_and_a_live_one_both(tmp_path: Path):
    kernel = trained(tmp_path)
    live, _ = kernel.panel._repr_mimebundle_()
    kernel.panel._live = False
    still, _ = kernel.panel._repr_mimebundle_()
    widget = "application/vnd.jupyter.widget-view+json"

    assert widget in live
    assert set(still) == {"text/html", "text/plain"}
    assert live["text/html"] == still["text/html"]
    assert "A step of digits takes" in still["text/plain"]


def shell(*, allow_stdin: bool | None) -> Any:
    content = {} if allow_stdin is None else {"allow_stdin": allow_stdin}
    return SimpleNamespace(kernel=SimpleNamespace(get_parent=lambda _: {"content": content}))


def test_a_person_in_front_of_the_notebook_is_told_from_a_program(monkeypatch: pytest.MonkeyPatch):
    for name in ("VOILA_REQUEST_URL", "SERVER_SOFTWARE", "WORKBENCH_PANEL"):
        monkeypatch.delenv(name, raising=False)

    assert chosen_mode("auto", shell=shell(allow_stdin=True)) == "live"
    assert chosen_mode("auto", shell=shell(allow_stdin=False)) == "static"  # papermill, nbconvert
    assert chosen_mode("auto", shell=shell(allow_stdin=None)) == "live"
    assert chosen_mode("auto", shell=SimpleNamespace()) == "static"  # IPython in a terminal
    assert chosen_mode("live", shell=shell(allow_stdin=False)) == "live"
    monkeypatch.setenv("SERVER_SOFTWARE", "voila/0.5.13")
    assert chosen_mode("auto", shell=shell(allow_stdin=False)) == "live"
    monkeypatch.setenv("WORKBENCH_PANEL", "static")
    assert chosen_mode("auto", shell=shell(allow_stdin=True)) == "static"
    monkeypatch.setenv("WORKBENCH_PANEL", "neon")
    with pytest.raises(SettingError, match="WORKBENCH_PANEL='neon' is unknown"):
        chosen_mode("auto")


def loop(cap: Any, panel: Any, steps: int = 14) -> list[dict[str, Any]]:
    """A loop of the user's own: waits 20 ms for each batch, and what the panel then said."""
    said: list[dict[str, Any]] = []
    panel._say = lambda content, buffers=None: said.append(content)

    def batches() -> Any:
        for _ in range(steps):
            time.sleep(0.02)
            yield torch.ones(4)

    with cap:
        for batch in cap.watch(batches()):
            (batch * 2).sum()
            cap.step()
    return said


def test_a_loop_of_which_every_step_was_profiled_has_no_step_time(tmp_path: Path):
    """One step before the window, whose beginning nobody marked, and then the window."""
    cap = wb.capture(tmp_path / "mine", warmup=1, steps=3)
    panel = wb.panel(cap, mode="static", folder=tmp_path)
    loop(cap, panel, steps=4)

    assert "every step that is kept ran under the profiler" in static_html(panel.desk)
    panel.close()


def test_a_capture_is_shown_while_its_loop_runs_and_cannot_be_switched(tmp_path: Path):
    cap = wb.capture(tmp_path / "mine", steps=3)
    panel = wb.panel(cap, mode="live", folder=tmp_path)
    said = loop(cap, panel)
    rows = panel.session.telemetry.columns()
    status = panel.desk.sections()["status"]

    assert any("steps" in one for one in said)  # the charts moved while the loop ran
    assert len(rows["step"]) == 13  # the first of 14 steps has no beginning
    assert rows["profiled"].sum() >= 3  # the window's steps, which no chart shows as step times
    panel.desk.feed.take()
    band = panel.desk.sections()["bursts"]
    assert len(band) == 1
    assert band[0]["to_s"] - band[0]["from_s"] >= 0.05  # three steps that wait 20 ms each
    assert (rows["input_ns"] >= 20e6 * 0.9).all()  # 20 ms of sleep in each wait
    assert status["readonly"]
    assert status["status"] == "stopped"
    assert str(cap.folder) in status["doing"]
    assert panel.run.name == cap.run.name
    panel.close()


def test_whoever_looks_on_and_fails_does_not_end_the_loop(tmp_path: Path):
    cap = wb.capture(tmp_path / "mine", steps=2)
    cap.listen(lambda *_: 1 / 0)
    with cap:
        for _ in range(6):
            torch.ones(4).sum()
            cap.step()

    assert any("looked on has failed" in note for note in cap.notes)
    assert cap.run.steps is not None


def test_the_panel_of_a_capture_leaves_no_thread(tmp_path: Path):
    before = set(threading.enumerate())
    cap = wb.capture(tmp_path / "mine", steps=2)
    panel = wb.panel(cap, mode="live", folder=tmp_path)
    loop(cap, panel, 8)
    panel.close()

    assert set(threading.enumerate()) <= before
