"""What leaves for the page: every number once, few bytes, sums that stay true."""

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.widgets.standin import MS, StandIn, train
from workbench.widgets.panel.feed import FIRST, MOST, NARROW, WIDE, Feed, in_force, pooled
from workbench.widgets.panel.sender import Sender

pytestmark = pytest.mark.slow


def columns(said: dict[str, Any], buffers: list[bytes]) -> dict[str, np.ndarray]:
    """A block as the page reads it."""
    count = said["count"]
    doubles = np.frombuffer(buffers[0], "<f8").reshape(len(said["wide"]), count)
    floats = np.frombuffer(buffers[1], "<f4").reshape(len(said["columns"]), count)
    names = [*said["wide"], *said["columns"]]
    return dict(zip(names, [*doubles, *floats], strict=True))


def test_a_step_is_sent_once_with_the_time_that_it_took():
    session = StandIn()
    feed = Feed(session.telemetry)
    train(session, 3)
    said, buffers = feed.take()
    first = columns(said["steps"], buffers)
    train(session, 2, first=3)
    said, buffers = feed.take()
    second = columns(said["steps"], buffers)

    assert first["step"].tolist() == [0, 1, 2]
    assert second["step"].tolist() == [3, 4]
    assert second["step_ns"][0] == pytest.approx(session.telemetry.columns(3)["step_ns"][0])
    assert feed.take() == ({}, [])


def test_a_part_that_was_not_measured_is_no_number_and_never_zero():
    session = StandIn()
    session.telemetry.plant(step=0, at_ns=5e9, step_ns=20 * MS, input_ns=float("nan"))
    said, buffers = Feed(session.telemetry).take()
    rows = columns(said["steps"], buffers)

    assert np.isnan(rows["input_ns"][0])
    assert np.isnan(rows["loss"][0])


def test_pooled_parts_still_add_up_to_the_step():
    step = np.array([10.0, 30.0, 20.0, 40.0, 50.0])
    rows = {"step": np.arange(5.0), "step_ns": step, "input_ns": step / 4, "pooled": np.ones(5)}
    few = pooled(rows, 3)

    assert few["step"].tolist() == [1, 3, 4]
    assert few["step_ns"].tolist() == [20, 30, 50]  # means of (10, 30), (20, 40) and 50
    assert few["input_ns"].tolist() == [5, 7.5, 12.5]
    assert few["pooled"].tolist() == [2, 2, 1]


def test_rows_of_several_settings_belong_to_none_and_profiled_steps_are_not_counted():
    session = StandIn()
    for step in range(4):
        session.telemetry.plant(
            step=step, at_ns=1e9 + step, step_ns=MS, change=step // 3, profiled=step == 1
        )
    said, buffers = Feed(session.telemetry).take()
    rows = columns(said["steps"], buffers)

    assert rows["change"].tolist() == [0, 0, 0, 1]
    assert rows["pooled"].tolist() == [1, 0, 1, 1]  # step 1 ran under the profiler
    few = pooled(rows, 2)
    assert few["change"][0] == 0  # steps 0 and 1
    assert np.isnan(few["change"][1])  # the switch was changed between steps 2 and 3
    assert in_force(rows)["step"].tolist() == [3]


def test_a_mean_leaves_out_what_was_not_measured():
    rows = {"step": np.arange(4.0), "loss": np.array([1.0, np.nan, np.nan, np.nan])}
    few = pooled(rows, 2)

    assert few["loss"][0] == 1
    assert np.isnan(few["loss"][1])


def test_a_page_that_comes_late_gets_the_newest_steps_as_they_are():
    session = StandIn()
    train(session, 3000)
    said, buffers = Feed(session.telemetry).take()
    rows = columns(said["steps"], buffers)

    assert said["steps"]["reset"]
    assert rows["step"][-FIRST:].tolist() == list(range(3000 - FIRST, 3000))
    assert rows["pooled"].sum() == 3000
    assert sum(map(len, buffers)) < 100_000


def test_ten_thousand_steps_at_a_thousand_a_second_are_few_messages():
    """U07: at most 4 messages and 100 kB in any second."""
    session = StandIn()
    feed = Feed(session.telemetry)
    for i in range(10_000):
        session.telemetry.plant(step=i, at_ns=1e9 + MS * i, step_ns=float(MS), loss=1.0)
    whole = session.telemetry.columns()
    began = time.monotonic()
    sent: list[tuple[float, int, int]] = []

    def done() -> int:
        return min(10_000, int((time.monotonic() - began) * 1000))

    def so_far(since: int = -1) -> dict[str, Any]:
        return {name: column[since + 1 : done()] for name, column in whole.items()}

    session.telemetry.columns = so_far  # type: ignore[method-assign]

    def send() -> int:
        said, buffers = feed.take()
        if not said:
            return 0
        size = sum(map(len, buffers))
        if "steps" in said:
            sent.append((time.monotonic() - began, size, int(said["steps"]["count"])))
        return size

    sender = Sender(send, active=lambda: done() < 3000, failed=pytest.fail)
    sender.poke()
    while done() < 3000:
        time.sleep(0.05)
    sender.close()

    for start, _, _ in sent:
        second = [(at, size) for at, size, _ in sent if start <= at < start + 1]
        assert len(second) <= 4
        assert sum(size for _, size in second) < 100_000
    assert len(sent) >= 3
    assert max(count for _, _, count in sent) <= max(MOST, 2 * FIRST)


def test_the_thread_of_the_sender_ends_when_there_is_nothing_to_send():
    sender = Sender(lambda: 0, active=lambda: False, failed=pytest.fail)
    sender.poke()
    deadline = time.monotonic() + 10
    while any(t.name == "workbench-panel-sender" for t in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_an_error_while_sending_is_told_and_does_not_end_the_sender():
    told: list[Exception] = []
    answers = iter([ValueError("broken"), 1])

    def send() -> int:
        answer = next(answers, 0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    sender = Sender(send, active=lambda: False, failed=told.append)
    sender.poke()
    deadline = time.monotonic() + 10
    while not told and time.monotonic() < deadline:
        time.sleep(0.02)
    sender.poke()
    time.sleep(0.6)
    sender.close()

    assert [str(error) for error in told] == ["broken"]
    assert next(answers, "all asked") == "all asked"


def test_the_columns_are_those_that_the_page_keeps():
    script = (Path(__file__).parents[2] / "widgets/panel/store.js").read_text(encoding="utf-8")
    kept = script.partition("STEP_COLUMNS = ")[2].partition("];")[0]

    assert all(f'"{name}"' in kept for name in (*WIDE, *NARROW))
