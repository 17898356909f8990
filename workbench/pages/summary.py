"""The top numbers of a Run, a line each, as HTML and as text."""

from collections.abc import Sequence

from workbench.pages.assets import page
from workbench.pages.escape import escape, visible

LONGEST = 160
"""Characters of a line; what is longer ends in an ellipsis."""


def summary_html(rows: Sequence[tuple[str, str]]) -> str:
    """Names and values as one cell's output."""
    made = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in rows)
    return page(f"<dl>{made}</dl>")


def summary_text(rows: Sequence[tuple[str, str]]) -> str:
    """The same for a terminal, a line a row."""
    width = max((len(visible(name)) for name, _ in rows), default=0)
    lines = (f"{visible(name):{width}}  {visible(text)}" for name, text in rows)
    return "\n".join(line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…" for line in lines)
