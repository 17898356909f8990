"""What a page asks for reaches the session, and what goes wrong is answered and shown."""

import json
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.widgets.standin import StandIn, change, effect, recorded, train
from workbench.errors import SettingError
from workbench.findings import Finding
from workbench.settings import Settings
from workbench.widgets.panel import desk
from workbench.widgets.panel.desk import Desk
from workbench.widgets.panel.grouping import grouped
from workbench.widgets.panel.runs import Shelf
from workbench.widgets.panel.widget import Panel
from workbench.workload.capability import Offer

pytestmark = pytest.mark.slow


FINDING = Finding(
    code="WB101",
    title="The step waits for data",
    verdict="yes",
    severity="critical",
    evidence={"input_share": 0.39},
    advice="Load in worker processes.",
    setting={"workers": 2},
    saving_ns_per_step_at_most=7e6,
)


class Kernel:
    """A panel whose messages are kept instead of sent."""

    def __init__(self, folder: Path, **more: Any) -> None:
        self.session = StandIn()
        self.desk = Desk(self.session, shelf=Shelf(folder), title="digits", **more)
        self.panel = Panel(self.desk)
        self.said: list[dict[str, Any]] = []
        self.panel._say = self._keep  # type: ignore[method-assign, assignment]

    def _keep(self, content: Any, buffers: Any = None) -> None:
        self.said.append(json.loads(json.dumps(content)))  # nothing but plain data may leave

    def page(self, kind: str, **more: Any) -> dict[str, Any]:
        """What is answered to a message of a page."""
        ticket = f"t{len(self.said)}"
        self.panel._receive(None, {"kind": kind, "ticket": ticket, **more}, [])
        return self.wait_for(lambda one: one["kind"] == "answer" and one["ticket"] == ticket)

    def wait_for(self, wanted: Any) -> dict[str, Any]:
        """The first message that is wanted."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            found = next((one for one in list(self.said) if wanted(one)), None)
            if found is not None:
                return found
            time.sleep(0.01)
        raise AssertionError(f"never said: {self.said[-3:]}")

    def section(self, name: str) -> Any:
        return json.loads(json.dumps(self.desk.sections()[name]))


@pytest.fixture
def kernel(tmp_path: Path) -> Any:
    made = Kernel(tmp_path)
    yield made
    made.session.fail = None
    made.panel.close()


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


def test_a_burst_shows_its_findings_worst_first_with_evidence_and_bound(kernel: Kernel):
    kernel.page("burst")
    burst = kernel.session.state.bursts[0]
    assert kernel.section("findings")["rows"] == []
    assert "waits" in kernel.section("status")["burst"]

    burst.status, burst.run, burst.findings = "done", recorded("b1"), (FINDING,)
    row = kernel.section("findings")["rows"][0]
    assert row["mark"] == "■ critical"
    assert row["evidence"] == [["input share", "39 %"]]
    assert row["bound"] == "at most 7.00 ms a step"
    assert row["setting"] == "wb.Settings(workers=2)"
    assert row["can_try"]


def test_a_burst_that_fails_says_why(kernel: Kernel):
    kernel.page("burst")
    burst = kernel.session.state.bursts[0]
    burst.status, burst.error = "failed", "the disk is full"
    for callback in kernel.session._callbacks:
        callback("burst")

    notice = kernel.section("status")["notice"]
    assert notice == {"kind": "error", "text": "The burst failed: the disk is full"}
    assert kernel.section("status")["burst"] is None


def test_try_it_verifies_the_finding_and_keep_applies_what_was_measured(kernel: Kernel):
    run = recorded("b1")
    kernel.session.become(bursts=(SimpleNamespace(status="done", run=run, findings=(FINDING,)),))
    kernel.page("verify", finding="0")
    assert kernel.session.asked[-1] == ("verify", FINDING)
    section = kernel.section("trial")
    assert section["running"]
    assert section["what"] == "workers 2"
    assert "no finished trial" in kernel.page("keep")["error"]

    measured = SimpleNamespace(
        sentence="▲ workers=2: 31 % (28–34) less time a step: keep it.",
        advice="keep",
        change=effect(0.69, 0.66, 0.72),
        parity=SimpleNamespace(reason="the losses agree"),
        bound=SimpleNamespace(saving=0.36),
        settings=Settings(workers=2),
    )
    trial = kernel.session.state.trial
    trial.status, trial.verification = "done", measured
    told = kernel.section("trial")
    assert told["gain"] == "▲ 31 % (28–34) less time"
    assert told["parity"] == "the losses agree"
    assert told["kept"] is None

    kernel.page("keep")
    assert kernel.session.asked[-1] == ("apply", Settings(workers=2))
    assert kernel.section("trial")["kept"] is True


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


def test_a_burst_says_which_steps_its_numbers_are_of(kernel: Kernel):
    """Never of those under the profiler, which take 40 ms instead of 13 to 15."""
    burst = SimpleNamespace(status="done", run=recorded("b"), findings=(FINDING,))
    kernel.session.become(bursts=(burst,))

    assert kernel.section("findings")["measured"] == (
        "From 10 steps under torch.profiler. Step times of record are of 3 steps without it, "
        "median 14.0 ms; the charts leave recorded steps out."
    )
    burst.run.record.timings.step_ns.clear()
    kernel.session.become(bursts=(SimpleNamespace(**{**vars(burst), "run": burst.run}),))
    kernel.desk._findings = None
    assert "none was measured without it" in kernel.section("findings")["measured"]


def test_findings_of_other_settings_than_those_in_force_say_so(kernel: Kernel):
    run = recorded("b1", workers=2)
    kernel.session.become(bursts=(SimpleNamespace(status="done", run=run, findings=(FINDING,)),))
    told = "Recorded under other settings (workers 2) than those in force now (as yours)."
    assert kernel.section("findings")["under"] == told

    kernel.session.become(settings=Settings(workers=2))
    assert kernel.section("findings")["under"] is None


@pytest.mark.parametrize(("minutes", "seconds"), [(2, 120.0), (0.5, 30.0), (None, None)])
def test_bursts_come_every_so_many_minutes(kernel: Kernel, minutes: Any, seconds: Any):
    kernel.page("bursts", watch_changes=True, burst_every_minutes=minutes)

    assert kernel.session.burst_every_s == seconds
    assert kernel.session.watch_changes


@pytest.mark.parametrize("minutes", [0, -3, "no number of"])
def test_an_interval_that_is_none_is_refused_and_said(kernel: Kernel, minutes: Any):
    kernel.session.burst_every_s = 60.0
    answer = kernel.page("bursts", watch_changes=False, burst_every_minutes=minutes)

    assert "give a number above 0" in answer["error"]
    assert kernel.session.burst_every_s == 60.0


def test_there_must_be_a_trial_to_cancel(kernel: Kernel):
    assert "Try it" in kernel.page("cancel")["error"]


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


def test_a_finding_that_a_newer_burst_replaced_says_so(kernel: Kernel):
    assert "newer burst" in kernel.page("verify", finding="7")["error"]


def test_a_change_is_shown_with_medians_and_its_interval_beside_its_switch(kernel: Kernel):
    settings = Settings(workers=2)
    told = {"effect": effect(0.5, 0.48, 0.53), "before_ns": 20e6, "after_ns": 10e6}
    kernel.session.changes = (
        change(1, 100, Settings(), settings, **told),
        change(2, 150, settings, Settings(workers=4), error="out of memory", applied_ns=None),
        change(3, 200, settings, Settings(workers=2, batch_size=64), per="sample", **told),
    )
    told = kernel.section("changes")
    rows = told["rows"]

    assert rows[0]["text"] == "workers as yours → 2"
    assert (rows[0]["before"], rows[0]["after"]) == ("20.0 ms", "10.0 ms")
    assert rows[0]["effect"] == "▲ 50 % (47–52) less time"
    assert told["fields"]["workers"] == {
        "verdict": "faster",
        "text": "last time ▲ 50 % (47–52) less time",
    }
    assert rows[1]["error"] == "out of memory"
    assert rows[1]["after"] == "not measured"
    assert rows[1]["at_s"] is None
    assert (rows[2]["before"], rows[2]["after"]) == ("20.0 ms a sample", "10.0 ms a sample")
    assert rows[2]["effect"] == "▲ 50 % (47–52) less time a sample"


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
