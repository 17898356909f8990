"""What a comparison shows of itself: its tables and charts as pages are made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.errors import RunError
from workbench.pages.charts import comparison_chart, difference_chart
from workbench.pages.comparison import ComparisonView
from workbench.pages.difference import difference_table, narrow_table, renames

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from workbench.figures.difference import Of
    from workbench.pages.static import StaticFigure
    from workbench.run.compare import Comparison

TABLES: tuple[Of, ...] = ("breakdown", "families", "kernels", "operators")
FIGURES = ("steps", *TABLES)


def comparison_view(found: Comparison) -> ComparisonView:
    """The page of a comparison; of several ranks it shows the first."""
    per, names = found.where[0].per, found.called
    tables = list(_tables(found))
    remarks = [line for of, table in tables if of == "kernels" for line in renames(table)]
    heads = ("first", "second")
    told = [each for each in tables if each[0] != "kernels" or not found.where[0].across_vendors]
    return ComparisonView(
        names=(found.first, found.second),
        differences=found.differences,
        sentence=found.sentence,
        rows=found.rows(),
        notes=found.notes,
        tables=[difference_table(table, of, names, per) for of, table in tables],
        narrow=[narrow_table(table, of, heads, per) for of, table in told],
        remarks=["renamed:", *remarks] if remarks else (),
    )


def comparison_figure(found: Comparison, name: str) -> StaticFigure:
    """One chart of a comparison.

    Raises:
        RunError: There is no chart of that name.
    """
    names = found.called
    if name == "steps":
        rest: dict[str, Any] = {}
        if found.change.reason and not (found.first_ns and found.second_ns):
            rest["reason"] = found.change.reason
        return comparison_chart(
            found.first_ns,
            found.second_ns,
            found.change if found.first_ns and found.second_ns else None,
            names_of=names,
            per=found.per,
            **rest,
        )
    of = next((each for each in TABLES if each == name), None)
    if of is None:
        raise RunError(f"no chart of a comparison is called {name!r}; there are {FIGURES}.")
    shown = found.where[0]
    reason = shown.reasons.get(of, "neither side recorded it.")
    return difference_chart(getattr(shown, of), of=of, names_of=names, per=shown.per, reason=reason)


def _tables(found: Comparison) -> Iterator[tuple[Of, pd.DataFrame]]:
    for of in TABLES:
        table = getattr(found.where[0], of)
        if table is not None and len(table):
            yield of, table
