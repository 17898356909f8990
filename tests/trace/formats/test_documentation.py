"""What docs/formats.md promises is what the code knows."""

import re
from pathlib import Path

from tests.trace.formats.tables import rows
from workbench import trace
from workbench.trace.table import Kind

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"


def test_the_page_lists_every_kind() -> None:
    (line,) = [line for line in PAGE.read_text().splitlines() if line.startswith("| `kind`")]
    listed = set(re.findall(r"`(\w+)`", line)) - {"kind"}
    assert listed == {kind.name.lower() for kind in Kind}


def test_the_example_of_the_page_is_read() -> None:
    example = PAGE.read_text().split("```csv\n")[1].split("```")[0]
    assert [row[:2] for row in rows(trace.read(example.encode()))] == [
        ("ProfilerStep#0", "annotation"),
        ("enqueue", "runtime"),
        ("input", "memcpy"),
        ("dense_1", "kernel"),
    ]
