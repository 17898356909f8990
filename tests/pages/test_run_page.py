"""The page of a Run: its order, its words, and the same in a terminal."""

from dataclasses import replace

import pytest

from tests.pages.hostile import Page
from workbench.findings.finding import Finding, Severity, Verdict
from workbench.pages.evidence import evidence_rows, label, value_text
from workbench.pages.findings import NONE, findings_html, findings_text
from workbench.pages.parts import parts_html, parts_text
from workbench.pages.run import LINES, PARTS, WIDTH, Section, run_html, run_text
from workbench.pages.table import Column, Table
from workbench.pages.view import Breakdown, RunView
from workbench.run.found import Findings

MS = 1_000_000


def _finding(
    title: str, severity: Severity = "warning", verdict: Verdict = "yes", **rest: object
) -> Finding:
    given = {"code": "WB101", "evidence": {"wait_us_per_step": 9120.0}, "advice": "Add workers."}
    return Finding(title=title, severity=severity, verdict=verdict, **{**given, **rest})


def _view() -> RunView:
    return RunView(
        title="demo",
        verdict="A step takes 23.2 ms, mostly waiting.",
        findings=tuple(_finding(f"finding {i}") for i in range(5)),
        breakdowns=(
            Breakdown(
                label="GPU 0",
                parts_ns={"compute": 60 * MS, "input": 40 * MS, "host_python": None},
                total_ns=100 * MS,
                steps=10,
            ),
        ),
        tables=(Table(caption="Kernels", columns=(Column(name="kernel"),), rows=(("gemm",),)),),
        measured=(("note", "batch size assumed"), ("note", "weights restored")),
        trust=("3 launches have no kernel.",),
        not_measured={"memory": "use Record(memory=True)"},
    )


def _whole_text(view: RunView) -> str:
    return "\n\n".join(repr(Section(view=view, name=name)) for name in PARTS)


@pytest.mark.parametrize("show", [lambda v: Page(run_html(v)).words, _whole_text])
def test_order_is_verdict_findings_parts_details_method(show):  # noqa: ANN001
    words = show(_view())
    told = [
        "mostly waiting",
        "finding 0",
        "GPU 0: mean of 10 steps, 10.0 ms, under the profiler",
        "gemm",
        "batch size assumed",
    ]
    places = [words.index(text) for text in told]
    assert places == sorted(places)


@pytest.mark.parametrize("show", [lambda v: Page(run_html(v)).words, _whole_text])
def test_every_number_is_in_words(show):  # noqa: ANN001
    words = show(_view())
    for text in ("60 %", "6.00 ms", "40 %", "4.00 ms", "9.12 ms", "not measured: host Python"):
        assert text in words


def test_notes_of_one_kind_are_all_kept():
    words = Page(run_html(_view())).words
    assert "batch size assumed" in words
    assert "weights restored" in words


def test_three_findings_are_open_and_the_rest_is_folded_away():
    html = findings_html(_view().findings)
    assert "2 more findings" in html
    assert html.index("finding 2") < html.index("2 more findings") < html.index("finding 3")


def test_idle_is_thin_and_work_is_not():
    html = run_html(_view())
    assert 'class="wb-part wb-idle" style="width:66.7%;background-color:#E69F00"' in html
    assert 'class="wb-part" style="width:100.0%;background-color:#0072B2"' in html


def test_each_part_can_be_shown_alone():
    shown = [Section(view=_view(), name=name) for name in PARTS]
    assert "mostly waiting" in shown[0]._repr_mimebundle_()["text/html"]


def test_a_bare_run_has_no_empty_sections():
    html = run_html(RunView(title="t", verdict="v"))
    assert "<details>" not in html
    assert NONE in html
    assert run_text(RunView(title="t", verdict="v")) == f"t\nv\n\n{NONE}"


def test_an_interval_whose_ends_read_the_same_is_one_number():
    """786.1 and 786.4 are both 786 µs: at least and at most would be the same words twice."""
    same = dict(evidence_rows({"saving_low_us": 786.1, "saving_high_us": 786.4}))
    assert same == {"saving by a free loader": "786 µs"}
    apart = dict(evidence_rows({"saving_low_us": 500.0, "saving_high_us": 786.4}))
    assert list(apart.values()) == ["500 µs", "786 µs"]


def test_a_terminal_gets_what_matters_on_one_screen_and_is_told_where_the_rest_is():
    """Of 12 findings with long advice and 8 devices, what fits in 40 lines of 80 columns."""
    view = _view()
    findings = tuple(
        _finding(f"finding {i}: " + "much is waited for " * 6, advice="Add workers. " * 20)
        for i in range(12)
    )
    crowded = replace(view, findings=findings, breakdowns=view.breakdowns * 8)
    lines = run_text(crowded).splitlines()
    assert len(lines) <= LINES
    assert max(map(len, lines)) <= WIDTH
    shown = sum(f"finding {i}:" in " ".join(lines) for i in range(12))
    assert shown >= 1
    assert f"{12 - shown} more" in " ".join(lines)
    for name in ("run.findings", 'run.part("parts")', 'run.part("details")', "wb.report"):
        assert name in " ".join(lines)
    assert "gemm" not in " ".join(lines), "tables are elsewhere"


def test_a_terminal_is_told_what_cannot_be_trusted_and_what_was_not_measured():
    text = run_text(_view())
    assert "cannot be trusted: 3 launches have no kernel." in text
    assert "not measured: memory" in " ".join(text.split())
    assert "note: batch size assumed" in text


def test_a_title_that_the_verdict_says_is_not_said_again_in_a_terminal():
    view = replace(_view(), verdict="finding 0 A step takes 23 ms.")
    assert run_text(view).count("finding 0") == 1
    assert "as said above  [WB101]" in run_text(view)


@pytest.mark.parametrize(
    ("severity", "verdict", "mark"),
    [
        ("critical", "yes", "■ critical"),
        ("warning", "yes", "◆ warning"),
        ("info", "yes", "○ note"),
        ("critical", "cannot_tell", "≈ cannot tell"),
    ],
)
def test_severity_is_told_by_word_and_shape(severity: Severity, verdict: Verdict, mark: str):
    finding = _finding("x", severity, verdict)
    assert mark in Page(findings_html([finding])).words
    assert findings_text([finding]).startswith(mark)


def test_gain_is_an_upper_bound_in_words():
    finding = _finding("x", saving_ns_per_step_at_most=9.12e6, speedup_at_most=1.647)
    assert "Gain: at most 9.12 ms a step (39 % less time, 1.65 times as fast)." in findings_html(
        [finding]
    )
    assert "gain: at most" in findings_text([finding])
    assert "gain" not in findings_text([_finding("x")]).lower()


def test_setting_is_shown_as_it_is_typed():
    assert "wb.Settings(workers=2)" in findings_text([_finding("x", setting={"workers": 2})])


@pytest.mark.parametrize(
    "show", [findings_text, lambda f: Page(findings_html(f)).words], ids=["text", "page"]
)
def test_findings_that_one_setting_answers_say_so(show):  # noqa: ANN001
    """Measured one after the other, they would be one question asked twice."""
    two, four = {"workers": 2}, {"workers": 4}
    found = [
        _finding("x", setting=two),
        _finding("y", setting=two, code="WB102"),
        _finding("z", setting=four, code="WB105"),
    ]
    assert show(found).count("as for WB101: one measurement answers both") == 1
    assert Findings(found).verifiable == (found[0], found[2])
    assert Findings([_finding("x")]).verifiable == ()


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("wait_us_per_step", 9120.0, "9.12 ms"),
        ("idle_ns", 5, "5.00 ns"),
        ("idle_share", 0.39, "39 %"),
        ("peak_bytes", 2_000_000, "2.00 MB"),
        ("steps", 58, "58"),
        ("workers", None, "not measured"),
        ("pinned", False, "no"),
        ("codes", [], "none"),
        ("samples_per_s", 120.0, "120 per s"),
        ("codes", ["a", "b"], "a, b"),
    ],
)
def test_evidence_carries_the_unit_that_its_name_says(name: str, value: object, text: str):
    assert value_text(name, value) == text


def test_the_unit_leaves_the_label():
    assert label("wait_us_per_step") == "wait per step"
    assert label("samples_per_s") == "samples"


@pytest.mark.parametrize("show", [parts_html, parts_text])
def test_parts_of_a_profile_that_fails_its_checks_say_so(show):  # noqa: ANN001
    void = Breakdown(label="GPU 0", parts_ns={"compute": 1, "unknown": 9}, total_ns=10)
    assert "not certain" not in show(void)
    assert "not certain" in show(replace(void, doubt="times"))


def test_evidence_by_name_keeps_the_names_and_takes_the_unit_of_all() -> None:
    from workbench.pages.evidence import evidence_rows

    told = {"operators_us": {"aten::_to_copy": 12.5}, "violations": {"missing_kernel": 3}}
    assert evidence_rows(told) == [
        ("operators", "aten::_to_copy 12.5 µs"),
        ("violations", "missing kernel 3"),
    ]


def test_what_was_not_measured_is_one_line_at_the_end_and_why_is_folded_below_it() -> None:
    missing = {"step_times": "record two steps", "kernels": "CPU only"}
    page = run_html(replace(_view(), not_measured=missing))
    _, end = page.split("<details><summary>Not measured: step times, kernels</summary>")
    assert "record two steps" in end
    assert end.endswith("</details></div>")
