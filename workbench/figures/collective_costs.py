"""What a collective costs against the size of its message, for every back end."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from workbench.figures import names, palette, template
from workbench.figures.collectives import bytes_ticks
from workbench.figures.empty import not_measured
from workbench.figures.scale import decades, exact
from workbench.units import bytes_text, significant, time_text

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from workbench.statistics.link import Link

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross")
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash")


def collective_costs(
    rows: "pd.DataFrame",
    links: "Mapping[str, Link]",
    *,
    collective: str,
    ranks: int,
    copy_gb_s: float | None = None,
) -> "go.Figure":
    """Draw the median times as points, and what the fitted link says as a line.

    Args:
        rows: backend, bytes, median_ns and bus_gb_s of one collective.
        links: The fitted link of each back end.
        collective: Its name.
        ranks: How many took part.
        copy_gb_s: The limit of the machine: what a rank copies in memory.
    """
    if not len(rows):
        return not_measured("Cost of collectives", f"{collective} was not measured.")
    drawn = template.figure(
        names.plain(headline(rows, collective)),
        names.plain(_subtitle(links, ranks, copy_gb_s)),
        height=360,
        xaxis={"title": {"text": "size of the buffer"}, "type": "log", **bytes_ticks(rows)},
        yaxis=decades("time (µs)"),
        showlegend=True,
        legend={"orientation": "v", "x": 1.01, "xanchor": "left", "y": 1},
    )
    for number, (backend, own) in enumerate(rows.groupby("backend", sort=False)):
        drawn.add_scatter(**_points(str(backend), own, number))
        if (link := links.get(str(backend))) is not None:
            sizes = sorted(int(size) for size in own["bytes"])
            times = [link.time_ns(collective, ranks, size) for size in sizes]
            drawn.add_scatter(**_line(str(backend), sizes, times, number))
    return drawn


def headline(rows: "pd.DataFrame", collective: str) -> str:
    """Who is fastest for the smallest and for the largest message."""
    word = collective.replace("_", "-")
    ends = []
    for size in (rows["bytes"].min(), rows["bytes"].max()):
        own = rows[rows["bytes"] == size]
        best = own.loc[own["median_ns"].idxmin()]
        ends.append((str(best["backend"]), int(size), float(best["median_ns"])))
    (small, low, fast), (large, high, slow) = ends
    if small == large:
        return (
            f"{small} is the fastest {word} at both ends: {time_text(fast)} for {bytes_text(low)}, "
            f"{time_text(slow)} for {bytes_text(high)}"
        )
    return (
        f"{small} is the fastest {word} of {bytes_text(low)} ({time_text(fast)}), "
        f"{large} of {bytes_text(high)} ({time_text(slow)})"
    )


def _subtitle(links: "Mapping[str, Link]", ranks: int, copy_gb_s: float | None) -> str:
    parts = [f"{ranks} ranks on this machine; lines: fitted"]
    for name, link in links.items():
        if link.gb_s is not None:
            of = "" if not copy_gb_s else f" ({significant(100 * link.gb_s / copy_gb_s)} %)"
            parts.append(f"{name} {significant(link.gb_s)} GB/s{of}")
    if copy_gb_s is not None:
        parts.append(f"100 % is a copy in memory, {significant(copy_gb_s)} GB/s")
    return " · ".join(parts)


def _points(backend: str, own: "pd.DataFrame", number: int) -> dict[str, Any]:
    said = [
        f"<b>{names.plain(backend)}</b><br>{bytes_text(size)} in {exact(took)}<br>"
        f"{significant(rate)} GB/s"
        for size, took, rate in zip(own["bytes"], own["median_ns"], own["bus_gb_s"], strict=True)
    ]
    return {
        "name": names.plain(backend),
        "x": [int(size) for size in own["bytes"]],
        "y": [float(took) / 1000 for took in own["median_ns"]],
        "mode": "markers",
        "marker": {"symbol": _SYMBOLS[number % len(_SYMBOLS)], "size": 9, "color": _colour(number)},
        "customdata": said,
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _line(backend: str, sizes: list[int], times: list[float], number: int) -> dict[str, Any]:
    return {
        "name": names.plain(f"{backend}, fitted"),
        "x": sizes,
        "y": [took / 1000 for took in times],
        "mode": "lines",
        "line": {"dash": _DASHES[number % len(_DASHES)], "width": 1.5, "color": _colour(number)},
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _colour(number: int) -> str:
    shades = ("communication", "compute", "input", "host_operators", "compilation")
    return palette.category(shades[number % len(shades)]).colour
