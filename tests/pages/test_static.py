"""A figure as a piece of a page: chart data, words and table together."""

import json

import plotly.graph_objects as go
import pytest

from tests.pages.hostile import Page
from workbench.pages.charts import kernels_chart, steps_chart, waits_chart
from workbench.pages.escape import escape, json_for_script
from workbench.pages.static import MOST_BYTES, StaticFigure, payload
from workbench.pages.table import Column, Table

MS = 1_000_000


def _steps() -> StaticFigure:
    return steps_chart([10 * MS, 12 * MS, 11 * MS])


def test_the_finding_stands_in_words_beside_the_chart():
    page = Page(_steps().html())
    assert "A step takes 11.0 ms" in page.words
    assert page.labels[0].startswith("A step takes 11.0 ms (from 10.0 ms to 12.0 ms). ")


def test_the_table_is_open_until_a_script_has_drawn():
    assert "<details open>" in _steps().html()
    assert "11.0 ms" in Page(_steps().html()).words


def test_the_chart_does_not_repeat_its_title():
    layout = json.loads(Page(_steps().html()).scripts[0])["layout"]
    assert "title" not in layout
    assert layout["height"] == 320 - (72 - 16)


def test_jupyter_gets_a_live_chart_a_page_and_text():
    bundle = _steps()._repr_mimebundle_(include=None, exclude=None)
    assert set(bundle) == {"application/vnd.plotly.v1+json", "text/html", "text/plain"}
    assert bundle["application/vnd.plotly.v1+json"]["layout"]["title"]["text"]
    assert bundle["text/plain"].startswith("A step takes 11.0 ms")


def test_nothing_measured_is_words_only():
    bundle = kernels_chart(None, reason="the trace is CPU only.")._repr_mimebundle_()
    assert set(bundle) == {"text/html", "text/plain"}
    assert bundle["text/plain"] == "Kernel times: not measured\nthe trace is CPU only."
    assert "data-wb-figure" not in bundle["text/html"].split("</style>")[1].split("<script>")[0]


def test_twenty_figures_stay_below_five_megabytes():
    bundle = waits_chart([10 * MS] * 100_000, [MS] * 100_000)._repr_mimebundle_()
    assert 20 * len(json.dumps(bundle)) < 5_000_000


def test_a_figure_that_was_not_aggregated_is_refused():
    figure = go.Figure(go.Scatter(y=[str(i) for i in range(MOST_BYTES // 5)]))
    with pytest.raises(ValueError, match="aggregate before drawing"):
        payload(figure)


def test_any_plotly_figure_will_do():
    table = Table(caption="T", columns=(Column(name="a"),), rows=(("x",),))
    figure = StaticFigure(figure=go.Figure(go.Bar(y=[1])), table=table, alt="A bar")
    assert json.loads(Page(figure.html()).scripts[0])["data"][0]["type"] == "bar"


def test_json_cannot_leave_its_script():
    text = json_for_script({"a": "</script><!--\u2028&"})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": "</script><!--\u2028&"}


def test_escaped_text_is_safe_in_a_quoted_attribute():
    assert escape("\"'<>&") == "&quot;&#x27;&lt;&gt;&amp;"
