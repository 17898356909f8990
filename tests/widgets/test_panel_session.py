"""The panel over a real training: every group of switches acts on it, and stopping puts it back."""

import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

import workbench as wb
from tests.widgets.kernel import FINDING
from tests.widgets.standin import StandIn
from workbench.session import Session

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]


def workload() -> wb.Workload:
    """A small network over 512 samples, whose loop takes about a millisecond a step."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 2))
    data = TensorDataset(torch.randn(512, 3, 8, 8), torch.randint(0, 2, (512,)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return wb.Workload(
        model,
        data,
        loss=nn.functional.cross_entropy,
        optimizer=optimizer,
        batch_size=8,
        name="small",
    )


class Page:
    """What a page would do: sends messages, and waits for what it is told."""

    def __init__(self, panel: Any) -> None:
        self.panel = panel
        self.said: list[dict[str, Any]] = []
        panel._say = lambda content, buffers=None: self.said.append(content)
        self.send("hello")

    def send(self, kind: str, **more: Any) -> None:
        """Send, and wait for the answer; an error of it is an error of the test."""
        ticket = f"t{len(self.said)}"
        self.panel._receive(None, {"kind": kind, "ticket": ticket, **more}, [])
        answer = self.until(
            lambda: next(
                (m for m in list(self.said) if m.get("ticket") == ticket and m["kind"] == "answer"),
                None,
            )
        )
        assert "error" not in answer, answer["error"]

    def until(self, true: Any, limit_s: float = 60) -> Any:
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            if found := true():
                return found
            time.sleep(0.02)
        raise AssertionError(f"never: {self.panel.session.state}")

    def trained(self, steps: int) -> None:
        """Wait for so many more steps."""
        goal = self.panel.session.state.step + steps
        self.until(lambda: self.panel.session.state.step >= goal)

    def switch(self, **values: Any) -> None:
        """Switch, and wait until it is in force and a step was made under it."""
        self.send("settings", values=values)
        wanted = wb.Settings(**values)
        self.until(lambda: self.panel.session.state.settings == wanted)
        self.trained(2)


@pytest.fixture
def visitor(tmp_path: Path) -> Iterator[Page]:
    work = workload()
    made = Page(wb.panel(work, mode="live", folder=tmp_path))
    made.work = work  # type: ignore[attr-defined]
    yield made
    made.panel.close()


def test_every_group_acts_on_the_running_training(visitor: Page):
    work: wb.Workload = visitor.work  # type: ignore[attr-defined]
    seen: list[tuple[torch.dtype, bool, int]] = []
    first = work.model[0]
    hook = first.register_forward_hook(
        lambda _m, args, out: seen.append(
            (out.dtype, args[0].is_contiguous(memory_format=torch.channels_last), len(args[0]))
        )
    )
    visitor.send("start")
    visitor.trained(3)
    assert seen[-1] == (torch.float32, False, 8)

    visitor.switch(precision="bf16")
    assert seen[-1][0] == torch.bfloat16
    visitor.switch(channels_last=True)
    assert seen[-1][:2] == (torch.float32, True)
    visitor.switch(batch_size=16)
    assert seen[-1][2] == 16
    visitor.switch(accumulation=2, clip_norm=0.5)
    visitor.switch(workers=1)
    assert visitor.panel.session.state.settings == wb.Settings(workers=1)
    visitor.switch(optimizer="foreach")
    groups = work.optimizers[0].param_groups
    assert all(group["foreach"] for group in groups)
    visitor.switch(threads=1)
    hook.remove()

    rows = visitor.panel.desk.sections()["changes"]["rows"]
    assert [row["text"] for row in rows][:2] == [
        "precision as yours → bf16",
        "precision bf16 → as yours, channels_last as yours → on",
    ]
    assert all(row["at_s"] is not None for row in rows)


def test_stopping_puts_everything_back_and_leaves_no_thread(tmp_path: Path):
    before_threads = set(threading.enumerate())
    work = workload()
    weights = {name: value.clone() for name, value in work.model.state_dict().items()}
    page = Page(wb.panel(work, mode="live", folder=tmp_path))
    page.send("start")
    page.trained(5)
    assert any(not torch.equal(weights[n], v) for n, v in work.model.state_dict().items())
    page.send("stop", keep=False)

    assert all(torch.equal(weights[n], v) for n, v in work.model.state_dict().items())
    page.panel.close()
    page.until(lambda: set(threading.enumerate()) <= before_threads)


def test_a_burst_ends_in_findings_and_a_run_on_disk(visitor: Page):
    visitor.send("start")
    visitor.trained(5)
    visitor.send("burst", steps=5)
    burst = visitor.panel.session.state.bursts[-1]
    assert burst.wait(120)
    assert burst.status == "done", burst.error
    visitor.until(lambda: visitor.panel.desk.sections()["history"]["rows"])
    sections = visitor.panel.desk.sections()

    assert visitor.panel.run.name == burst.run.name
    assert sections["findings"]["run"] == burst.run.name
    assert [row["name"] for row in sections["history"]["rows"]] == [burst.run.place.name]


def test_undo_goes_back_and_what_is_copied_is_in_force(visitor: Page):
    visitor.send("start")
    visitor.switch(precision="bf16")
    visitor.switch(precision="bf16", accumulation=2)
    visitor.send("undo")
    visitor.until(lambda: visitor.panel.settings == wb.Settings(precision="bf16"))
    visitor.send("code")
    told = visitor.said[-1] if "result" in visitor.said[-1] else visitor.said[-2]

    assert "wb.Settings(precision='bf16')" in told["result"]["code"]
    assert "torch.autocast" in told["result"]["code"]


def test_the_still_panel_trains_records_and_ends_before_it_returns(tmp_path: Path):
    before_threads = set(threading.enumerate())
    work = workload()
    weights = {name: value.clone() for name, value in work.model.state_dict().items()}
    panel = wb.panel(work, mode="static", steps=30, folder=tmp_path)
    bundle, _ = panel._repr_mimebundle_()
    text = re.sub(r"<style>.*?</style>|<[^>]+>", " ", bundle["text/html"], flags=re.DOTALL)

    assert panel.session.state.status == "stopped"
    assert panel.session.state.step >= 30
    (burst,) = panel.session.state.bursts
    # One step settles the profiler before the ten that are recorded; reading them trains none.
    assert panel.session.state.step <= burst.step + 11 + 1
    assert panel.findings is not None
    assert "A step of small takes" in text
    assert "application/vnd.jupyter.widget-view+json" not in bundle
    assert all(torch.equal(weights[n], v) for n, v in work.model.state_dict().items())
    panel.close()
    deadline = time.monotonic() + 10
    while not set(threading.enumerate()) <= before_threads and time.monotonic() < deadline:
        time.sleep(0.05)
    assert set(threading.enumerate()) <= before_threads


def test_the_standin_speaks_the_words_of_the_session():
    for name in (
        *("start", "pause", "resume", "step_once", "stop", "apply", "replace", "undo", "burst"),
        *("verify", "offers", "listen"),
    ):
        assert callable(getattr(Session, name)), name
        assert callable(getattr(StandIn, name)), name


@pytest.mark.slow
def test_try_it_ends_in_a_verdict_and_keeping_it_puts_it_in_force(visitor: Page):
    visitor.send("start")
    visitor.trained(5)
    found = SimpleNamespace(findings=(replace(FINDING, setting={"channels_last": True}),), run=None)
    desk = visitor.panel.desk
    desk._last_burst = lambda: found
    visitor.send("verify", finding="0")
    visitor.until(lambda: desk.session.state.trial.over, limit_s=120)
    told = desk.sections()["trial"]
    assert told["error"] is None
    assert told["advice"] in ("keep", "revert", "cannot tell")
    assert "channels_last=True" in told["sentence"]

    visitor.send("keep")
    visitor.until(lambda: visitor.panel.settings == wb.Settings(channels_last=True))
    visitor.trained(2)
