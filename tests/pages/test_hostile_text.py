"""Text from traces and users stays text in every place where a page shows some."""

import json
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from tests.pages.hostile import NAMES, Page, shown
from workbench.findings.finding import Finding
from workbench.pages.charts import (
    breakdown_chart,
    comparison_chart,
    difference_chart,
    kernels_chart,
)
from workbench.pages.comparison import ComparisonView, comparison_html, comparison_text
from workbench.pages.difference import difference_table, narrow_table, renames
from workbench.pages.findings import findings_html, findings_text
from workbench.pages.run import run_html, run_text
from workbench.pages.runs import runs_html, runs_text
from workbench.pages.static import StaticFigure
from workbench.pages.table import Column, Table, table_html
from workbench.pages.tuning import TuningView, trials_chart, tuning_html, tuning_text
from workbench.pages.view import Breakdown, RunView

pytestmark = pytest.mark.parametrize("name", NAMES)


def _finding(name: str) -> Finding:
    return Finding(
        code="WB101",
        title=name,
        verdict="yes",
        severity="warning",
        evidence={name: name, "list": [name], "map": {name: name}},
        advice=name,
        setting={"workers": name},
    )


def _check(html: str, name: str, *, times: int = 1) -> None:
    html.encode()
    page = Page(html)
    assert page.foreign == []
    assert page.words.count(shown(name)) >= times


def test_finding(name: str):
    _check(findings_html([_finding(name)]), name, times=6)
    findings_text([_finding(name)]).encode()


def test_run_page(name: str):
    view = RunView(
        title=name,
        verdict=name,
        findings=(_finding(name),),
        breakdowns=(Breakdown(label=name, parts_ns={name: 5}, total_ns=5),),
        tables=(Table(caption=name, columns=(Column(name=name),), rows=((name,),)),),
        measured=((name, name),),
        trust=(name,),
        not_measured={name: name},
    )
    _check(run_html(view), name, times=16)
    run_text(view).encode()


def test_table_cell_and_heading(name: str):
    table = Table(caption=name, columns=(Column(name=name, kind="name"),), rows=((name,),))
    _check(table_html(table), name, times=3)


def test_list_of_runs(name: str):
    entry = SimpleNamespace(
        folder=SimpleNamespace(name=name),
        created=name,
        settings={name: name},
        step_ns=None,
        size_bytes=1,
    )
    entries: Any = [entry]
    _check(runs_html(entries, where=name), name, times=3)
    runs_text(entries, where=name).encode()


def test_comparison(name: str):
    difference: Any = SimpleNamespace(where=name, name=name, first=name, second=[name])
    names = {"name": [name], "name_first": [f"old {name}"], "match": [name], "group": [name]}
    frame = pd.DataFrame({key: pd.Series(value, dtype=object) for key, value in names.items()})
    frame = frame.assign(change="faster", calls_first=1, calls_second=1, first_ns=9.0)
    frame = frame.assign(second_ns=5.0, difference_ns=-4.0, low_ns=-5.0, high_ns=-3.0)
    view = ComparisonView(
        names=(name, name),
        differences=[difference],
        sentence=name,
        rows=[(name, name, name)],
        notes=[name],
        tables=[difference_table(frame, "kernels", (name, name), "step")],
        narrow=[narrow_table(frame, "kernels", (name, name), "step")],
        remarks=renames(frame),
    )
    _check(comparison_html(view), name, times=12)
    comparison_text(view).encode()
    _check(difference_chart(frame, of="kernels", names_of=(name, name)).html(), name)


def _figures(name: str) -> list[StaticFigure]:
    kernels = pd.DataFrame(
        {
            "device": [0],
            "name": pd.Series([name], dtype=object),
            "family": pd.Series([name], dtype=object),
            "calls": [1],
            "total_ns": [5],
            "median_ns": [5],
            "share": [1.0],
            "tensor_core": [None],
        }
    )
    change = SimpleNamespace(ratio=0.5, low=0.4, high=0.6, verdict="faster", reason=name)
    return [
        kernels_chart(kernels),
        breakdown_chart(Breakdown(label=name, parts_ns={"compute": 5}, total_ns=5)),
        comparison_chart([5], [5], change, names_of=(name, name)),
    ]


def test_figure_with_its_table_and_words(name: str):
    for figure in _figures(name):
        html = figure._repr_mimebundle_()["text/html"]
        _check(html, name)
        page = Page(html)
        assert len(page.scripts) == 2, "the data and the drawing script, nothing more"
        assert json.loads(page.scripts[0])["data"]
        figure.text().encode()


def test_reason_for_an_empty_figure(name: str):
    _check(kernels_chart(None, reason=name)._repr_mimebundle_()["text/html"], name)


def test_search_page(name: str):
    row = {
        **dict.fromkeys(("setting", "origin", "reason", "decision"), name),
        **{
            "time_ns": 5e6,
            "without_ns": 6e6,
            "low_ns": 4e6,
            "high_ns": 6e6,
            "gain": 0.1,
            "kept": True,
        },
        **{"memory_bytes": 10, "device_bytes": None, "parity": name},
    }
    view = TuningView(
        sentence=name, rows=[row], per="step", lines=[name], code=f"# {name}", place=name
    )
    _check(tuning_html(view), name, times=5)
    lines = TuningView(sentence="", rows=[], per="step", lines=[], code="a\nb", place="")
    assert "<pre>a\nb</pre>" in tuning_html(lines)
    tuning_text(view).encode()
    drawn = trials_chart(view).figure.to_json()
    assert "<script" not in drawn
