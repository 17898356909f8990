"""A memory snapshot in a terminal: who holds the peak, and what failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from workbench.pages.escape import visible
from workbench.units import bytes_text, share_text

if TYPE_CHECKING:
    from rich.console import Console

    from workbench.run.run import Run

ROWS = 10


def print_memory(run: Run, console: Console) -> None:
    """Print who holds the peak of each memory, and what to do where a request failed."""
    for found in run.ranks[0].memory_devices:
        if found.holders is None or not len(found.holders) or not found.peak_bytes:
            continue
        title = f"Who holds {bytes_text(found.peak_bytes)} of {found.device.label} at the peak"
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        table.add_column("line", justify="left")
        table.add_column("category", justify="left")
        for name in ("bytes", "share"):
            table.add_column(name, justify="right")
        for row in found.holders.head(ROWS).to_dict("records"):
            whose = str(row["line"] or row["operator"] or "not known")
            size = int(row["bytes"])
            numbers = bytes_text(size), share_text(size / found.peak_bytes)
            table.add_row(Text(visible(whose), overflow="ellipsis"), row["category"], *numbers)
        console.print(Padding(table, (1, 0, 0, 0)))
    for failed in run.ranks[0].post_mortems:
        asked = bytes_text(failed.requested_bytes)
        console.print(Text(f"\n{asked} could not be had. What needs less:"))
        for remedy in failed.remedies:
            console.print(Text(f"  {remedy.what}: up to {bytes_text(remedy.saves_bytes)} less"))
