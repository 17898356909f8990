"""The bar is text, appears only where somebody looks, and leaves nothing behind."""

import io
import re
import sys
import threading
from types import SimpleNamespace

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


@pytest.mark.parametrize(("stdin", "shown"), [(True, True), (False, False)])
def test_a_notebook_shows_it_only_where_it_has_a_front_end(
    monkeypatch: pytest.MonkeyPatch, *, stdin: bool, shown: bool
) -> None:
    """Papermill and nbconvert say that nobody can answer: their log would keep every update."""
    kernel = SimpleNamespace(get_parent=lambda channel: {"content": {"allow_stdin": stdin}})
    ipython = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=kernel))
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "ipykernel", SimpleNamespace())
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress(shown=True, title="resnet18") as bar:
        bar.expect(3)
        bar.advance()
    assert ("resnet18" in stream.getvalue()) is shown


def test_it_never_shows_more_steps_than_its_total_nor_lets_the_total_grow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
    assert (2, 2) in shown
    assert {total for _, total in shown} == {2}
    assert all(done <= total for done, total in shown)
    assert "5step" in terminal.getvalue(), "counted on, without a share"


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
