"""The curve of a loader sweep: a line for each variant, what was not measured left out."""

from typing import Any

from workbench.figures.empty import reason_of
from workbench.figures.loader_sweep import loader_sweep
from workbench.pages.sweep import sweep_chart

MS = 1e6


def row(workers: int, step_ms: float | None, variant: str = "as usual", **rest: Any) -> Any:
    step = None if step_ms is None else step_ms * MS
    return {
        "workers": workers,
        "variant": variant,
        "settings": f"workers={workers}",
        "step_ns": step,
        "low_ns": None if step is None else 0.9 * step,
        "high_ns": None if step is None else 1.2 * step,
        "startup_ns": 80 * MS if workers else None,
        "memory_bytes": 500_000_000,
        "reason": None,
        "chosen": False,
        "as_it_is": False,
        **rest,
    }


ROWS = [
    row(0, 70, as_it_is=True),
    row(1, None, reason="cannot be as fast: the loader alone is slower"),
    row(4, 21),
    row(2, 22, chosen=True),
    row(2, 21.5, "prefetch 4"),
]


def test_each_variant_is_a_line_over_its_workers() -> None:
    """In milliseconds and in order of workers; intervals reach 10 % down and 20 % up."""
    figure = loader_sweep(ROWS, 20 * MS, title="workers=2: 69 % less time")
    usual, deep = figure.data
    assert [round(x) for x in usual.x] == [0, 2, 4]
    assert usual.x[1] < 2 < deep.x[0], "points of equal workers lie beside each other"
    assert list(usual.y) == [70, 22, 21]
    assert [round(end, 6) for end in usual.error_y.arrayminus] == [7, 2.2, 2.1]
    assert [round(end, 6) for end in usual.error_y.array] == [14, 4.4, 4.2]
    assert list(usual.marker.symbol) == ["circle-open", "diamond", "circle"]
    assert deep.name == "prefetch 4"
    assert deep.marker.symbol != usual.marker.symbol  # told apart without colour
    (level,) = figure.layout.shapes
    assert level.y0 == 20
    assert any("if the loader were free" in note.text for note in figure.layout.annotations)
    assert figure.layout.yaxis.range[0] == 0


def test_without_a_measurement_there_is_a_reason_and_no_chart() -> None:
    figure = loader_sweep([row(1, None)], 20 * MS, title="The loader keeps up")
    assert reason_of(figure) is not None


def test_the_table_holds_what_was_not_tried_as_well() -> None:
    """For a terminal, and for those who do not see the chart."""
    chart = sweep_chart(ROWS, 20 * MS, title="workers=2")
    text = chart.text()
    assert "cannot be as fast: the loader alone is slower" in text
    assert "chosen" in text
    assert "as it is" in text
    assert "not measured" in text
    assert "<table" in chart.html()


def test_foreign_names_are_not_markup() -> None:
    figure = loader_sweep([row(0, 5, settings="<b>$x$")], None, title="<i>no</i>")
    assert "<i>" not in figure.layout.title.text
    assert "<b>$" not in figure.data[0].customdata[0]
    assert not figure.layout.shapes  # no ceiling is known
