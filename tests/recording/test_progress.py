"""The bar is text, appears only where somebody looks, and leaves nothing behind."""

import io
import re
import sys
import threading

import pytest

from workbench.recording import progress
from workbench.recording.progress import Progress


class Terminal(io.StringIO):
    """Text that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_it_and_is_clean_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    threads = threading.active_count()
    with Progress(shown=True, title="resnet18") as bar:
        bar.expect(3)
        bar.stage("warm-up")
        bar.advance()
    assert "resnet18" in terminal.getvalue()
    assert "warm-up" in terminal.getvalue()
    assert terminal.getvalue().rsplit("\r", 2)[-2].strip() == ""
    assert threading.active_count() == threads


@pytest.mark.parametrize(("shown", "stream"), [(False, Terminal()), (True, io.StringIO())])
def test_it_is_silent_when_told_so_or_when_nobody_looks(
    monkeypatch: pytest.MonkeyPatch, *, shown: bool, stream: io.StringIO
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    with Progress(shown=shown, title="resnet18") as bar:
        bar.expect(3)
        bar.advance()
    assert stream.getvalue() == ""


def test_it_never_shows_more_steps_than_its_total(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two steps are expected and five come, as when a noisy machine is measured again."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "_STAGE_S", 0.0)
    with Progress(shown=True, title="resnet18") as bar:
        bar.expect(2)
        for _ in range(5):
            bar.advance()
            bar.stage("measuring")
    shown = [
        (int(done), int(total)) for done, total in re.findall(r"(\d+)/(\d+)", terminal.getvalue())
    ]
    assert (5, 5) in shown
    assert all(done <= total for done, total in shown)


def test_stages_that_follow_at_once_do_not_flood_a_notebook(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """50 stages without a pause: the empty bar, the first stage, the line that clears it."""
    monkeypatch.setattr(progress, "_STAGE_S", 60.0)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with Progress(shown=True, title="resnet18") as bar:
        for number in range(50):
            bar.stage(f"stage {number}")
    assert "stage 0" in terminal.getvalue()
    assert "stage 1" not in terminal.getvalue()
