"""Charts of work and roof, with their tables and alternative text."""

from typing import TYPE_CHECKING, Any

from workbench.figures.gemms import gemm_speeds
from workbench.figures.module_tree import module_tree
from workbench.figures.roof_waterfall import roof_waterfall
from workbench.figures.roofline import roofline_points
from workbench.pages.charts import drawn_chart
from workbench.pages.frames import LIMIT, from_frame
from workbench.pages.static import StaticFigure
from workbench.pages.table import Kind, Table

if TYPE_CHECKING:
    import pandas as pd

Wanted = tuple[tuple[str, str, Kind], ...]

_ROOF: Wanted = (
    ("name", "operator", "name"),
    ("kind", "kind", "text"),
    ("dtype", "type", "text"),
    ("calls", "calls", "number"),
    ("time_ns", "a step", "time"),
    ("roof_ns", "at the roof", "time"),
    ("distance_ns", "at most to win", "time"),
    ("roof_share", "of the roof", "share"),
    ("regime", "limited by", "text"),
)
_GEMMS: Wanted = (
    ("name", "product", "name"),
    ("dtype", "type", "text"),
    ("batch", "batch", "count"),
    ("m", "m", "count"),
    ("n", "n", "count"),
    ("k", "k", "count"),
    ("layout", "layout", "text"),
    ("alignment", "alignment", "count"),
    ("time_ns", "a step", "time"),
    ("tflop_s", "TFLOP/s", "number"),
    ("peak_share", "of the peak", "share"),
    ("advice", "advice", "name"),
    ("saving_ns", "at most to win", "time"),
)
_MODULES: Wanted = (
    ("shown", "module", "name"),
    ("time_ns", "a step", "time"),
    ("forward_ns", "forward", "time"),
    ("backward_ns", "backward", "time"),
    ("gflop", "GFLOP", "number"),
    ("bytes", "bytes", "bytes"),
    ("counted_share", "counted", "share"),
)


ROWS = 12
"""Operators in a table: those with the most to win."""


def _roof_table(frame: "pd.DataFrame") -> Table:
    """What has no type of its own moves bytes of any."""
    ready = frame.assign(dtype=frame["dtype"].fillna("any"))
    return from_frame("Operators by distance to the roof, per step", ready, _ROOF, ROWS)


def roofline_chart(frame: "pd.DataFrame | None", **rest: Any) -> StaticFigure:
    """Operators against the roof; the table is sorted by what could be won."""
    table = None
    if frame is not None:
        table = _roof_table(frame)
    return drawn_chart(roofline_points(frame, **rest), table, "A mark an operator below its roof.")


def roof_waterfall_chart(frame: "pd.DataFrame | None", **rest: Any) -> StaticFigure:
    """From the measured time to the roof."""
    table = None
    if frame is not None:
        table = _roof_table(frame)
    alt = "A bar for the measured time, one for each operator's distance, one for the roof."
    return drawn_chart(roof_waterfall(frame, **rest), table, alt)


def gemms_chart(frame: "pd.DataFrame | None", **rest: Any) -> StaticFigure:
    """Matrix products by size and speed."""
    table = None
    if frame is not None:
        table = from_frame("Matrix products, per step", frame, _GEMMS, LIMIT)
    return drawn_chart(gemm_speeds(frame, **rest), table, "A mark a shape of a product.")


def module_chart(frame: "pd.DataFrame | None", **rest: Any) -> StaticFigure:
    """The tree of modules by time, FLOPs or bytes."""
    table = None
    if frame is not None:
        shown = [
            "\u00a0\u00a0" * depth + name
            for depth, name in zip(frame["depth"], frame["module"], strict=True)
        ]
        ready = frame.assign(shown=shown, gflop=frame["flops"].astype(float) / 1e9)
        table = from_frame("Cost by module, per step", ready, _MODULES, 2 * LIMIT)
    return drawn_chart(module_tree(frame, **rest), table, "Boxes of modules, children below.")
