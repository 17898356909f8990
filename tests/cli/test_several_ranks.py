"""``workbench analyze`` of a folder of ranks: side by side, and one of them in full."""

import json
import re
from pathlib import Path

from typer.testing import CliRunner

import workbench as wb
from tests.analysis.jobs import job_trace, write_job
from tests.kineto import Kineto
from workbench.cli import app

FOUR = (400, 400, 600, 400)
"""Rank 2 computes 200 us longer: the others wait 200 and everybody transfers 100."""


def shown(folder: Path) -> str:
    done = CliRunner().invoke(app, ["analyze", str(folder)], catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def rows(text: str) -> dict[str, str]:
    """The lines of the table of ranks by rank."""
    _, table = text.split("Ranks: where their windows go")
    lines = table.split("in full")[0].splitlines()
    return {line.split()[0]: line for line in lines if line[:1].isdigit()}


def test_ranks_stand_side_by_side(tmp_path: Path) -> None:
    """The window is from 100 to 2800 us: 3 x 400 us of compute are 44 % of it, 3 x 600 are 67."""
    found = rows(shown(write_job(tmp_path, FOUR)))
    assert list(found) == ["0", "1", "2", "3"]
    assert "44 %" in found["0"]
    assert "22 %" in found["0"], "it waits for 3 x 200 us"
    assert "67 %" in found["2"]
    assert "0.0 %" in found["2"], "and waits for nobody"
    assert all("11 %" in line for line in found.values()), "3 x 100 us of transfer each"


def test_the_rank_that_the_worst_finding_is_about_is_shown_in_full(tmp_path: Path) -> None:
    text = shown(write_job(tmp_path, FOUR))
    assert "Rank 2 in full · rank2.trace.json" in text
    assert text.count("\nKernels\n") == 1, "not a table for each rank"
    assert "--json" in text, "where the others are"


def test_what_fails_on_another_rank_is_still_said(tmp_path: Path) -> None:
    """Rank 1 launches a kernel that its trace lacks; rank 0 is the one in full."""
    for rank in (0, 1):
        made = job_trace(rank, (400, 400))
        if rank:
            made.op("aten::mm", 2950, 20)
            made.runtime("cudaLaunchKernel", 2955, 5, correlation=99)
        made.write(tmp_path / f"rank{rank}.trace.json")
    text = shown(tmp_path)
    assert "Rank 0 in full" in text
    assert "\nrank 1\nmissing_kernel: " in text


def test_ranks_without_parts_have_no_empty_table(tmp_path: Path) -> None:
    for rank in (0, 1):
        made = Kineto()
        made.header["distributedInfo"] = {"backend": "gloo", "rank": rank, "world_size": 2}
        made.op("aten::mm", 100, 0)
        made.write(tmp_path / f"rank{rank}.trace.json")
    assert "Ranks: where" not in shown(tmp_path), "a window of no length has no parts"


def test_a_report_looks_at_the_rank_that_is_shown_in_full(tmp_path: Path) -> None:
    """Rank 2 of four computes longer: it is the straggler, not the first."""
    run = wb.open(write_job(tmp_path, FOUR))
    assert run.worst_rank == 2
    assert "Rank 2" in run.figure("kernels", rank=run.worst_rank).title
    source = Path("notebooks/reports/profile.ipynb").read_text(encoding="utf-8")
    cells = ["".join(cell["source"]) for cell in json.loads(source)["cells"]]
    calls = [call for cell in cells for call in re.findall(r"run\.figure\(([^)]*)\)", cell)]
    for_all = ('"ranks"', '"breakdown", device=device')
    assert all("rank=shown" in call for call in calls if call not in for_all), calls
