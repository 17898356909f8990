"""Numbers of logarithmic axes, and words for colours, as plotly's own script draws them."""

import json
from typing import Any

import pytest
from playwright.sync_api import Page

from workbench.figures import template
from workbench.figures.gemms import work_unit
from workbench.figures.scale import decades
from workbench.pages.assets import drawing_script, plotly_script
from workbench.pages.static import StaticFigure

COVERED = """() => {
    const legend = document.querySelector("g.legend").getBoundingClientRect();
    const plot = document.querySelector(".wb-plot .cartesianlayer");
    const drawn = [...plot.querySelectorAll("g.trace, g.xtick text, g.ytick text")];
    return drawn.filter((each) => {
        const box = each.getBoundingClientRect();
        return Math.min(box.right, legend.right) - Math.max(box.left, legend.left) > 2
            && Math.min(box.bottom, legend.bottom) - Math.max(box.top, legend.top) > 2;
    }).length;
}"""


def show(page: Page, figure: Any) -> None:
    chart = StaticFigure(figure=figure, table=None, alt="a test")
    page.set_content(chart.html())
    page.add_script_tag(content=plotly_script().decode())
    page.add_script_tag(content=drawing_script())
    page.wait_for_selector("[data-wb-figure=drawn]")


def test_powers_of_ten_are_written_out(page: Page):
    """Plotly itself writes 1000 as ``1e+3`` or ``1k``, 1e9 as ``1B``, and 0.0001 as ``100µ``."""
    axis = {**decades("GB/s"), "range": [-4.2, 4.2]}
    figure = template.figure("A title", "of a test", height=400, xaxis=axis)
    figure.add_scatter(x=[1e-4, 1e4], y=[0, 1])
    show(page, figure)
    told = page.locator("g.xtick text").all_text_contents()
    wanted = ["0.0001", "0.001", "0.01", "0.1", "1", "10", "100", "1\u2009000", "10\u2009000"]
    assert told == wanted, json.dumps(told)


@pytest.mark.parametrize("width", [390, 1000])
def test_the_words_for_colours_stand_apart_from_what_is_drawn(page: Page, width: int):
    """Beside long names of lanes they covered them on a narrow page."""
    page.set_viewport_size({"width": width, "height": 800})
    figure = template.figure(
        "A title",
        "of a test",
        height=240,
        showlegend=True,
        legend={"orientation": "v", "x": 1.01, "xanchor": "left", "y": 1},
        margin={"l": 6, "r": 16, "t": 72, "b": 48},
    )
    for part in ("samples: read and decode", "transfer between processes", "start of loader"):
        lanes = ["the loop waits for data", "worker 0"]
        figure.add_bar(orientation="h", x=[1, 2], y=lanes, name=part)
    show(page, figure)
    assert page.evaluate(COVERED) == 0
    if width < 560:
        drawn = page.locator(".wb-plot g.barlayer").bounding_box()
        assert drawn is not None
        assert drawn["width"] > 100, "a chart, not a strip"


@pytest.mark.parametrize(
    ("flops", "told"), [(2e12, ("TFLOP", 1e12)), (3e8, ("MFLOP", 1e6)), (12, ("FLOP", 1.0))]
)
def test_work_is_told_in_the_unit_of_the_largest(flops: float, told: tuple[str, float]):
    assert work_unit(flops) == told
