"""One profiler at a time: ours among themselves, and never one inside the user's own."""

import gc
import threading

import pytest
import torch
from torch.autograd import profiler as autograd_profiler
from torch.profiler import ProfilerActivity, profile, schedule

from workbench.errors import ProfilerBusyError
from workbench.recording.ownership import claim, refuse_foreign_profiler

CPU = [ProfilerActivity.CPU]


def test_a_second_claim_is_refused_and_names_the_first() -> None:
    first = claim("wb.profile")
    with pytest.raises(ProfilerBusyError, match=r"wb\.profile is already running"):
        claim("wb.capture")
    first.release()
    claim("wb.capture").release()


def test_a_claim_in_another_thread_is_refused_too() -> None:
    first = claim("wb.profile")
    refused: list[str] = []

    def other() -> None:
        try:
            claim("wb.profile")
        except ProfilerBusyError as error:
            refused.append(str(error))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    first.release()
    assert "MainThread" in refused[0]


def test_a_forgotten_claim_does_not_block_the_process() -> None:
    claim("wb.capture")
    gc.collect()
    claim("wb.profile").release()


def test_a_holder_that_gives_way_is_ended_by_the_next() -> None:
    ended: list[str] = []
    first = claim("wb.capture", give_way=lambda: ended.append("capture"))
    claim("wb.profile").release()
    assert ended == ["capture"]
    first.release()


def test_a_recording_torch_profiler_is_refused_and_keeps_its_events() -> None:
    with profile(activities=CPU) as theirs:
        torch.ones(2) + 1
        with pytest.raises(ProfilerBusyError, match=r"wb\.open\('trace\.json'\)"):
            claim("wb.profile")
        torch.ones(2) + 1
    names = [event.name for event in theirs.events()]
    assert names.count("aten::add") == 2


def test_a_torch_profiler_in_another_thread_is_seen() -> None:
    started, done = threading.Event(), threading.Event()

    def record() -> None:
        with profile(activities=CPU):
            started.set()
            done.wait()

    thread = threading.Thread(target=record)
    thread.start()
    started.wait()
    try:
        with pytest.raises(ProfilerBusyError):
            refuse_foreign_profiler()
    finally:
        done.set()
        thread.join()
    refuse_foreign_profiler()


def test_the_legacy_profilers_are_seen() -> None:
    with autograd_profiler.profile(), pytest.raises(ProfilerBusyError):
        refuse_foreign_profiler()
    with autograd_profiler.emit_itt(), pytest.raises(ProfilerBusyError):
        refuse_foreign_profiler()


def test_a_scheduled_profiler_is_seen_while_it_waits_and_warms_up() -> None:
    """Starting ours in its warm-up would crash torch when theirs begins to record."""
    plan = schedule(wait=1, warmup=1, active=1, repeat=1)
    with profile(activities=CPU, schedule=plan, acc_events=True) as theirs:
        for _ in range(3):
            with pytest.raises(ProfilerBusyError):
                refuse_foreign_profiler()
            theirs.step()
    refuse_foreign_profiler()


class Holder:
    """Holds itself and a profiler, as a trainer does that broke off."""

    def __init__(self) -> None:
        self.itself = self
        self.profiler = profile(activities=CPU, schedule=schedule(wait=5, warmup=1, active=1))
        self.profiler.__enter__()


def test_a_waiting_profiler_that_nobody_holds_any_more_is_no_obstacle() -> None:
    gc.disable()
    try:
        Holder()
        claim("wb.profile").release()
    finally:
        gc.enable()
