"""What a page asks for reaches the session, and what goes wrong is answered and shown."""

import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.widgets.kernel import Kernel
from tests.widgets.standin import MS, train
from workbench.errors import SettingError
from workbench.session.records import Change
from workbench.settings import Settings
from workbench.widgets.panel import desk, view
from workbench.widgets.panel.grouping import grouped
from workbench.workload.capability import Offer

pytestmark = pytest.mark.slow


def test_a_page_that_comes_gets_everything_that_there_is(kernel: Kernel):
    train(kernel.session, 5)
    kernel.page("hello")
    update = kernel.wait_for(lambda one: one["kind"] == "update")

    assert update["sections"]["status"]["step"] == 5
    assert update["steps"]["count"] == 5
    assert update["steps"]["reset"]
    assert update["sections"]["look"]["colours"]["input"] == "#E69F00"  # visual.md: amber


def test_only_what_is_new_is_sent_again(kernel: Kernel):
    kernel.page("hello")
    kernel.wait_for(lambda one: one["kind"] == "update" and "offers" in one["sections"])
    time.sleep(0.6)
    kernel.said.clear()
    train(kernel.session, 2)
    update = kernel.wait_for(lambda one: one["kind"] == "update")

    assert set(update["sections"]) == {"status"}
    assert not update["steps"]["reset"]


def test_the_page_learns_when_a_burst_was_recorded(kernel: Kernel):
    session = kernel.session
    train(session, 5, step_ms=20.0)
    start_ns = float(session.telemetry.columns(0)["at_ns"][0])
    burst, waiting = session.burst(), session.burst()
    burst.began_ns, burst.ended_ns = int(start_ns + 100 * MS), int(start_ns + 350 * MS)
    kernel.page("hello")
    told = kernel.wait_for(lambda one: one.get("sections", {}).get("bursts"))["sections"]["bursts"]

    # The page's clock begins with the first step: 100 and 350 ms after it. One that waits has none.
    assert waiting.began_ns is None
    assert told == [{"from_s": pytest.approx(0.1), "to_s": pytest.approx(0.35)}]


def test_of_many_changes_the_newest_are_sent_and_the_others_counted():
    one = Change(
        number=1,
        asked_ns=4,
        applied_ns=5,
        step=10,
        before=Settings(),
        after=Settings(clip_norm=1.0),
    )
    told = view.changes_section([replace(one, number=n) for n in range(1, 61)])

    assert [row["number"] for row in told["rows"]] == list(range(11, 61))
    assert told["earlier"] == 10
    assert told["in_force"] == 60


@pytest.mark.parametrize(
    ("kind", "asked"),
    [("start", ("start",)), ("pause", ("pause",)), ("step", ("step_once",)), ("undo", ("undo",))],
)
def test_a_button_reaches_the_session(kernel: Kernel, kind: str, asked: tuple[Any, ...]):
    assert "error" not in kernel.page(kind)
    assert kernel.session.asked[-1] == asked


def test_start_resumes_what_is_paused(kernel: Kernel):
    kernel.page("start")
    kernel.page("pause")
    kernel.page("start")

    assert kernel.session.asked[-1] == ("resume",)


@pytest.mark.parametrize("keep", [False, True])
def test_stop_says_whether_the_weights_stay(kernel: Kernel, keep: bool):
    kernel.page("stop", keep=keep)

    assert kernel.session.asked[-1] == ("stop", keep)


def test_switches_ask_for_exactly_what_they_show(kernel: Kernel):
    kernel.page("settings", values={"workers": 2, "precision": "bf16", "compile": None})

    assert kernel.session.asked[-1] == ("replace", Settings(workers=2, precision="bf16"))
    assert kernel.section("status")["pending"] == {"precision": "bf16", "workers": 2}


def test_an_impossible_combination_is_answered_and_asks_for_nothing(kernel: Kernel):
    answer = kernel.page("settings", values={"workers": 0, "prefetch_factor": 2})

    assert "needs worker processes" in answer["error"]
    assert kernel.session.asked == []
    assert kernel.section("status")["notice"]["kind"] == "error"


def test_an_error_of_a_handler_is_shown_in_the_status(kernel: Kernel):
    kernel.session.fail = ZeroDivisionError("inside a handler")
    answer = kernel.page("start")

    assert answer["error"] == "ZeroDivisionError: inside a handler"
    assert kernel.section("status")["notice"]["text"] == answer["error"]


@pytest.mark.parametrize(
    "content", [None, 3, {}, {"kind": "rm -rf"}, {"kind": ["start"]}, {"kind": "settings"}]
)
def test_a_message_that_is_not_ours_changes_nothing(kernel: Kernel, content: Any):
    kernel.panel._receive(None, content, [])

    assert kernel.session.asked == []


def test_what_cannot_act_is_not_offered(kernel: Kernel):
    def able() -> set[str]:
        return {name for name, on in kernel.section("status")["can"].items() if on}

    assert able() == {"start", "apply"}
    kernel.page("start")
    assert able() == {"pause", "stop", "burst", "apply", "verify"}
    kernel.session.become(status="busy")
    assert able() == {"stop"}


def test_what_is_learned_while_switches_are_grouped_is_not_lost(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
):
    """The sender's thread groups them while another thread asks the machine."""
    known = Offer(field="pin_memory", values=(True,), state="refused", reason="no accelerator")
    kernel.session.offered = (known,)

    def meanwhile(*arguments: Any) -> dict[str, Any]:
        kernel.desk.learn()
        return grouped(*arguments)

    monkeypatch.setattr(desk, "grouped", meanwhile)
    assert not kernel.section("offers")["ready"]
    assert kernel.section("offers")["ready"]


class Shown:
    """A shelf with one Run whose name has a dot."""

    def __init__(self, place: Path) -> None:
        self.baseline = None
        self.runs = {place.name: SimpleNamespace(name=place.name, place=place)}

    def section(self) -> dict[str, Any]:
        return {"rows": []}


def test_a_report_keeps_the_whole_name_and_says_why_there_is_none(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    kernel.desk.shelf = Shown(tmp_path / "lr-0.1")  # type: ignore[assignment]
    asked: list[list[str]] = []

    def ends(command: list[str], **_: Any) -> Any:
        asked.append(command)
        return SimpleNamespace(returncode=len(asked) - 1, stderr="Traceback\nno such step")

    monkeypatch.setattr("subprocess.run", ends)
    written = kernel.page("report", name="lr-0.1")
    assert written["result"]["path"] == str(tmp_path / "lr-0.1.html")  # not lr-0.html

    error = kernel.page("report", name="lr-0.1")["error"]
    assert "no such step" in error
    assert f"workbench report {tmp_path / 'lr-0.1'}" in error


def test_what_was_decided_for_the_user_is_shown(kernel: Kernel):
    kernel.session.become(notes=("compiled without CUDA graphs",))

    assert kernel.section("status")["notes"] == ["compiled without CUDA graphs"]


def test_names_of_others_cannot_turn_or_break_a_line(tmp_path: Path):
    kernel = Kernel(tmp_path)
    kernel.desk.title = "evil\u202egnp\x00\n<b>"
    kernel.session.become(doing="\u2066x")

    status = kernel.section("status")
    assert status["title"] == "evil\ufffdgnp\ufffd\ufffd<b>"  # markup is text for textContent
    assert status["doing"] == "\ufffdx"
    kernel.panel.close()


def test_closing_the_panel_stops_the_training_and_leaves_no_thread(tmp_path: Path):
    before = set(threading.enumerate())
    kernel = Kernel(tmp_path)
    kernel.page("hello")
    kernel.page("start")
    kernel.panel.close()

    assert kernel.session.asked[-1] == ("stop", False)
    assert set(threading.enumerate()) <= before


def test_a_training_that_nobody_watches_pauses(kernel: Kernel):
    kernel.page("hello")
    kernel.page("start")
    kernel.panel._heard -= 1000
    kernel.panel._update()

    assert ("pause",) in kernel.session.asked
    assert "no page" in kernel.section("status")["notice"]["text"]


def test_a_page_that_leaves_and_does_not_come_back_pauses_it_sooner(kernel: Kernel):
    kernel.page("hello")
    kernel.page("start")
    kernel.panel._receive(None, {"kind": "bye"}, [])
    kernel.panel._update()
    assert ("pause",) not in kernel.session.asked  # it may only be drawn anew

    kernel.panel._heard -= 16
    kernel.panel._update()
    assert ("pause",) in kernel.session.asked


def test_settings_that_the_session_refuses_reach_the_switch(kernel: Kernel):
    kernel.session.fail = SettingError("pin_memory=True needs an accelerator.")
    answer = kernel.page("settings", values={"pin_memory": True})

    assert answer["error"] == "pin_memory=True needs an accelerator."
