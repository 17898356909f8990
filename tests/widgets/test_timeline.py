"""The timeline's kernel side: what is selected is a value, and what the page asks is answered."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.house.files import ROOT
from tests.pages.timeline import loop
from tests.pages.timeline.loop import US
from workbench.errors import RunError
from workbench.pages.timeline.static import StaticTimeline
from workbench.widgets.timeline import Selection, Timeline, headless


@pytest.fixture
def timeline(tmp_path: Path) -> Timeline:
    made = loop.run(tmp_path).timeline()
    assert isinstance(made, Timeline)
    return made


@pytest.fixture
def sent(timeline: Timeline, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    monkeypatch.setattr(timeline, "send", lambda content, buffers=None: messages.append(content))
    return messages


def page_says(timeline: Timeline, **content: Any) -> None:
    timeline._receive(timeline, content, [])


def place_of(timeline: Timeline, name: str) -> int:
    """Where an event of that name stands in the scene."""
    answers = timeline._answers
    return next(at for at in range(len(answers.scene)) if answers.named(at).name == name)


def test_a_selected_stretch_is_a_value(timeline: Timeline):
    assert timeline.selection is None
    told = {"from": 460_000, "to": 1_460_000, "event": -1}
    page_says(timeline, kind="select", selection=told)
    assert timeline.selection == Selection(start_us=460.0, end_us=1460.0)
    assert timeline.selection.duration_us == 1000.0
    page_says(timeline, kind="select", selection=None)
    assert timeline.selection is None


def test_a_clicked_event_tells_its_name_and_lane(timeline: Timeline):
    event = place_of(timeline, "sgemm_128x64")
    page_says(timeline, kind="select", selection={"from": 460_000, "to": 960_000, "event": event})
    assert timeline.selection == Selection(
        start_us=460.0,
        end_us=960.0,
        name="sgemm_128x64",
        lane="GPU 0 (NVIDIA A100-SXM4-40GB) · stream 7",
    )


@pytest.mark.parametrize(
    "told", [{"from": 1}, {"from": "a", "to": 2, "event": -1}, {"from": 1, "to": 2, "event": 10**9}]
)
def test_a_page_that_says_nonsense_changes_nothing(timeline: Timeline, told: Any):
    page_says(timeline, kind="select", selection={"from": 0, "to": 1000, "event": -1})
    page_says(timeline, kind="select", selection=told)
    timeline._receive(timeline, "nonsense", [])
    assert timeline.selection == Selection(start_us=0.0, end_us=1.0)


def test_a_stretch_of_a_device_sums_to_itself(timeline: Timeline, sent: list[dict[str, Any]]):
    page_says(timeline, kind="summary", ticket="t1", **{"from": 860_000, "to": 1_560_000})
    (message,) = sent
    assert message["ticket"] == "t1"
    (device,) = message["answer"]["breakdowns"]
    parts = {part["category"]: part["ns"] for part in device["parts"]}
    # Kernels to 960 and from 1460 µs: 100 + 100; between them 500 µs idle, 400 of them input.
    assert parts["compute"] == 200 * US
    assert parts["input"] == 400 * US
    assert sum(parts.values()) == device["total"] == 700 * US
    assert message["answer"]["longest"] == [
        {"name": "sgemm_128x64", "category": "compute", "ns": 200 * US, "calls": 2}
    ]


def test_the_same_is_a_call_for_the_next_cell(timeline: Timeline):
    with pytest.raises(RunError, match="Nothing is selected"):
        timeline.summary()
    timeline.go_to(860, 1560)
    assert timeline.summary() == timeline.summary(860, 1560)


def test_going_somewhere_reaches_every_view_and_is_a_selection(timeline: Timeline):
    timeline.go_to(100.5, 200)
    told = {"from": 100_500, "to": 200_000, "event": -1}
    assert timeline._place == {**told, "number": 1}
    assert timeline.selection == Selection(start_us=100.5, end_us=200)
    timeline.go_to(100.5, 200)
    assert timeline._place["number"] == 2, "the page is told again"
    for low, high in ((5, 5), (9, 1), (float("nan"), 1), ("x", 1)):
        with pytest.raises(RunError, match="later end"):
            timeline.go_to(low, high)  # type: ignore[arg-type]


def test_details_tell_what_the_page_does_not_hold(timeline: Timeline, sent: list[dict[str, Any]]):
    page_says(timeline, kind="details", ticket="a", event=place_of(timeline, "aten::addmm"))
    copy = place_of(timeline, "Memcpy HtoD (Pageable -> Device)")
    page_says(timeline, kind="details", ticket="b", event=copy)
    assert ("Shapes", "[[8,4],[4,2]]") in sent[0]["answer"]
    # 4096 bytes in 20 µs are 0.205 GB/s.
    assert sent[1]["answer"][:2] == [("Bytes", "4.10 kB"), ("Speed", "0.205 GB/s")]


def test_an_error_is_told_to_the_page(timeline: Timeline, sent: list[dict[str, Any]]):
    page_says(timeline, kind="details", ticket="a", event=10**9)
    page_says(timeline, kind="dance", ticket="b")
    assert [message["ticket"] for message in sent] == ["a", "b"]
    assert "nobody answers" in sent[1]["error"]


def test_a_saved_notebook_holds_a_page_and_lines_besides_the_widget(timeline: Timeline):
    data, _ = timeline._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert 'data-wb-timeline="waiting"' in data["text/html"]
    assert "Timeline of loop.json.gz" in data["text/plain"]
    assert repr(timeline) == data["text/plain"]


class Kernel:
    """What stands behind IPython's shell."""

    def __init__(self, *, stdin: bool) -> None:
        self.kernel = self
        self.stdin = stdin

    def get_parent(self, channel: str) -> dict[str, Any]:
        return {"content": {"allow_stdin": self.stdin}}


@pytest.mark.parametrize(("stdin", "voila", "expected"), [
    (False, False, True),  # papermill, nbconvert --execute
    (True, False, False),  # JupyterLab
    (False, True, False),  # Voilà may not ask either, but people look at it
])  # fmt: skip
def test_without_a_person_it_is_a_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, stdin: bool, voila: bool, expected: bool
):
    monkeypatch.setattr("IPython.get_ipython", lambda: Kernel(stdin=stdin))
    if voila:
        monkeypatch.setenv("SERVER_SOFTWARE", "voila/0.5")
    assert headless() is expected
    made = loop.run(tmp_path).timeline()
    assert isinstance(made, StaticTimeline) is expected
    assert isinstance(loop.run(tmp_path).timeline(static=False), Timeline)


def test_a_shell_without_a_kernel_counts_as_a_person(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("IPython.get_ipython", lambda: None)
    assert headless() is False


def test_without_the_notebook_extra_there_is_still_the_page(tmp_path: Path):
    loop.kineto().write(tmp_path / "loop.json")
    code = (
        "import sys\n"
        "sys.modules['anywidget'] = sys.modules['ipywidgets'] = None\n"
        "import workbench as wb\n"
        f"run = wb.open({str(tmp_path / 'loop.json')!r})\n"
        "print(type(run.timeline()).__name__)\n"
        "try:\n    run.timeline(static=False)\n"
        "except wb.errors.MissingExtraError as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("StaticTimeline\n")
    assert "torch-workbench[notebook]" in done.stdout
