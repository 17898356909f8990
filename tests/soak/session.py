"""A session that lives long under a panel: memory, messages, steps, threads, files, processes.

    python -m tests.soak.session --minutes 30

Settings are switched all the time, loaders with workers among them; a burst is recorded every
minute; a page listens to the panel. Prints the table of docs/session.md, and ends with an error
where memory is not flat, a step is lost, or too many messages are sent.
"""

import argparse
import gc
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import psutil
import torch

import workbench as wb
from tests.session.loops import Remembered
from workbench.settings import Settings

WAIT_S = 120.0
FLAT = 0.05
"""Memory may move by so much of what it was when everything had happened once."""
MESSAGES_MOST = 10.0
"""A second, from the panel to its page."""
WARM = 1 / 6
"""Of the time; then everything has happened a few times: 5 of 30 minutes."""
BURST_EVERY_S = 60.0
PING_S = 20.0
SAMPLE_S = 5.0
SETTLE_S = 20.0
"""Threads that linger, such as the panel's sender, may take so long to go."""
SWITCHES = (
    Settings(workers=1),
    Settings(batch_size=6),
    Settings(precision="bf16"),
    Settings(precision="bf16_pure"),
    Settings(workers=2, persistent_workers=True),
    Settings(),
)


@dataclass(kw_only=True)
class Page:
    """Listens to a panel as a page does, and counts."""

    panel: Any
    messages: int = 0
    bytes_sent: int = 0
    _pinged: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.panel._say = self._hear
        self.say("hello")

    def _hear(self, content: dict[str, Any], buffers: list[bytes] | None = None) -> None:
        self.messages += 1
        self.bytes_sent += len(str(content)) + sum(map(len, buffers or []))

    def say(self, kind: str) -> None:
        """A message to the kernel."""
        self.panel._receive(None, {"kind": kind, "ticket": "t"}, [])
        self._pinged = time.monotonic()

    def stay(self) -> None:
        """Say now and then that it is still there."""
        if time.monotonic() - self._pinged > PING_S:
            self.say("ping")


@dataclass(kw_only=True)
class Outcome:
    """What the time has brought."""

    minutes: float
    steps: int
    switches: int
    refused: int
    bursts: int
    failed_bursts: int
    first_mb: float
    last_mb: float
    most_mb: float
    messages_s: float
    kbytes_s: float
    lost: int
    applied_ms: float
    grown: dict[str, tuple[int, int]]
    """Threads, files and processes, before and after, where they are more."""
    error: str | None

    def table(self) -> str:
        """Rows of a table of the documentation."""
        change = self.last_mb / self.first_mb - 1
        rows = (
            ("date", f"{datetime.now(UTC):%Y-%m-%d}"),
            ("minutes", f"{self.minutes:.1f}"),
            ("steps, of which lost", f"{self.steps:,}, {self.lost}"),
            ("switches, of which refused", f"{self.switches:,}, {self.refused}"),
            ("asked → in force, median", f"{self.applied_ms:.1f} ms"),
            ("bursts read, of which failed", f"{self.bursts}, {self.failed_bursts}"),
            (
                "memory of the kernel",
                f"{self.first_mb:.0f} → {self.last_mb:.0f} MB ({change:+.1%}), "
                f"at most {self.most_mb:.0f} MB",
            ),
            (
                "messages to the page",
                f"{self.messages_s:.1f} a second, {self.kbytes_s:.1f} kB a second",
            ),
            ("threads, files, processes left", str(self.grown or "none")),
        )
        return "\n".join(("| | |", "|---|---|", *(f"| {name} | {said} |" for name, said in rows)))

    def wrong(self) -> list[str]:
        """What must not be."""
        found = []
        if abs(self.last_mb / self.first_mb - 1) > FLAT:
            found.append(f"memory went from {self.first_mb:.0f} to {self.last_mb:.0f} MB")
        if self.messages_s > MESSAGES_MOST:
            found.append(f"{self.messages_s:.1f} messages a second")
        if self.lost:
            found.append(f"{self.lost} steps were lost")
        if self.refused or self.failed_bursts or self.error:
            found.append(f"something failed: {self.error}")
        if self.grown:
            found.append(f"left: {self.grown}")
        return found


def soak(minutes: float, folder: Path, *, sample_s: float = SAMPLE_S) -> Outcome:
    """Let a session live under a panel for so long."""
    loop, process = Remembered(), psutil.Process()
    counts = _counted(process)
    panel: Any = wb.panel(loop.work, folder=folder, mode="live")
    page, session = Page(panel=panel), panel.session
    session.burst_every_s = min(BURST_EVERY_S, 6 * minutes)
    began, lost, memory = time.monotonic(), 0, list[float]()
    seconds, warm_messages = 60 * minutes, (0, 0, 0.0)
    known, sampled = -1, 0.0
    refused, applied, bursts = 0, list[float](), dict[int, Any]()
    session.start()
    for settings in _again(SWITCHES):
        session.replace(settings)
        if not session.wait(6, WAIT_S):
            break
        page.stay()
        last = session.changes[-1]
        refused += last.error is not None
        applied += [] if last.applied_ns is None else [(last.applied_ns - last.asked_ns) / 1e6]
        bursts |= {burst.number: burst.status for burst in session.state.bursts}
        for seen in (loop.seen.numbers, loop.seen.losses, loop.model.dtypes, loop.model.sizes):
            seen.clear()  # the loop's own growth
        steps = session.telemetry.columns(known + 1)["step"]
        if len(steps):
            lost += int(steps[-1]) - known - len(steps)
            known = int(steps[-1])
        spent = time.monotonic() - began
        if spent >= WARM * seconds and time.monotonic() - sampled >= sample_s:
            warm_messages = warm_messages if memory else (page.messages, page.bytes_sent, spent)
            memory.append(process.memory_info().rss / 1e6)
            sampled = time.monotonic()
        if spent >= seconds and settings == SWITCHES[-1]:
            break
    spent = time.monotonic() - began
    heard = (page.messages - warm_messages[0]) / (spent - warm_messages[2])
    sent = (page.bytes_sent - warm_messages[1]) / (spent - warm_messages[2])
    for burst in session.state.bursts:
        burst.wait(WAIT_S)
        bursts[burst.number] = burst.status
    state, switches = session.state, session.changes_dropped + len(session.changes)
    panel.close()
    until = time.monotonic() + SETTLE_S
    while (left := _more(counts, _counted(process))) and time.monotonic() < until:
        gc.collect()
        time.sleep(0.5)
    if left:
        left |= {thread.name: (0, 1) for thread in threading.enumerate()}
    edge = max(len(memory) // 5, 1)
    return Outcome(
        minutes=spent / 60,
        steps=state.step,
        switches=switches,
        refused=refused,
        bursts=sum(status == "done" for status in bursts.values()),
        failed_bursts=sum(status == "failed" for status in bursts.values()),
        first_mb=statistics.median(memory[:edge]),
        last_mb=statistics.median(memory[-edge:]),
        most_mb=max(memory),
        messages_s=heard,
        kbytes_s=sent / 1000,
        lost=lost,
        applied_ms=statistics.median(applied),
        grown=left,
        error=state.error,
    )


def _again(settings: tuple[Settings, ...]) -> Iterator[Settings]:
    while True:
        yield from settings


def _more(before: dict[str, int], now: dict[str, int]) -> dict[str, tuple[int, int]]:
    return {name: (count, now[name]) for name, count in before.items() if now[name] > count}


def _counted(process: psutil.Process) -> dict[str, int]:
    return {
        "threads": len(threading.enumerate()),
        "files": process.num_fds(),
        "processes": len(active_children()),
    }


def main() -> int:
    """Soak, print the table, and say what is wrong."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=30)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        outcome = soak(asked.minutes, Path(folder))
    wrong = outcome.wrong()
    sys.stdout.write(f"{outcome.table()}\n\n" + ("\n".join(wrong) or "Everything held.") + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
