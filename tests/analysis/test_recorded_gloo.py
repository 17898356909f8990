"""Two ranks over gloo as torch 2.13 records them (``tests/analysis/gloo``, four MLP blocks).

In ``slow`` rank 1 slept 20 ms before every forward pass. ``*_told.json`` is what
``ddp._get_ddp_logging_data()`` said in the recorded steps; DDP says in one step what it measured
in the step before.
"""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.run.run import Run

HERE = Path(__file__).parent / "gloo"
MS = 1_000_000


@pytest.fixture(scope="module")
def runs() -> dict[str, Run]:
    return {name: wb.open(HERE / name) for name in ("ddp", "slow", "fsdp", "tp", "pp")}


def hidden_share(name: str, rank: int) -> float:
    """By brute force: of each 10 µs in which gloo works, the share beside a kernel of ATen."""
    text = gzip.decompress((HERE / name / f"rank{rank}.trace.json.gz").read_bytes())
    events = [e for e in json.loads(text)["traceEvents"] if e.get("ph") == "X"]
    loop = next(e["tid"] for e in events if e["name"].startswith("ProfilerStep"))
    spans: dict[str, list[tuple[float, float]]] = {"gloo": [], "computes": []}
    calls = [e["ts"] for e in events if "c10d" in e["name"] and e["tid"] == loop]
    for e in events:
        span = (e["ts"], e["ts"] + e["dur"])
        if e["name"].startswith("gloo:"):
            spans["gloo"].append(span)
        elif (
            e["name"].startswith(("aten::", "torch."))
            and e["tid"] == loop
            and not any(span[0] <= ts < span[1] for ts in calls)
        ):
            spans["computes"].append(span)
    grid = {
        kind: {tick for a, b in each for tick in range(int(a // 10), int(b // 10) + 1)}
        for kind, each in spans.items()
    }
    return len(grid["gloo"] & grid["computes"]) / len(grid["gloo"])


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("ddp", 0.25, 0.5), ("slow", 0.1, 0.5), ("fsdp", 0.0, 0.02), ("tp", 0.0, 0.05)],
)
def test_a_wait_for_a_collective_is_no_compute_that_hides_it(
    runs: dict[str, Run], name: str, low: float, high: float
) -> None:
    """Tensor parallel waits for every all-reduce, as sharding does here; buckets run beside."""
    table = runs[name].communication
    assert table is not None
    for rank in (0, 1):
        mine = table[table["rank"] == rank]
        share = mine["hidden_ns"].sum() / mine["total_ns"].sum()
        assert low <= share <= high
        assert share == pytest.approx(hidden_share(name, rank), abs=0.05)


def test_bytes_are_those_of_the_model(runs: dict[str, Run]) -> None:
    """Four blocks of 256 × 1024 + 1024 + 1024 × 256 + 256 float32 weights, four steps."""
    weights = 4 * (256 * 1024 + 1024 + 1024 * 256 + 256)
    table = runs["ddp"].communication
    assert table is not None
    assert table["bytes"].tolist() == [4 * 4 * weights] * 2
    assert table["calls"].tolist() == [16] * 2, "one that lies inside another is a call as well"
    gathered = runs["fsdp"].communication
    assert gathered is not None
    gathers = gathered[gathered["collective"] == "all_gather"]
    # two steps; each block is gathered for forward and for backward, all ranks' parts together
    assert gathers["bytes"].tolist() == [2 * 2 * 4 * weights] * 2
    assert set(table["dtype"]) == {"float"}


@pytest.mark.parametrize("name", ["ddp", "slow"])
def test_buckets_agree_with_what_ddp_measured_itself(runs: dict[str, Run], name: str) -> None:
    """Backward to half a millisecond, and what communication is left behind it.

    DDP reads its clock when the loop's thread has woken up and copied every bucket back, the trace
    ends with gloo's own thread: on two busy processors one to four milliseconds apart, DDP later in
    the mean.
    """
    told: dict[str, list[dict[str, Any]]] = json.loads((HERE / f"{name}_told.json").read_text())
    table = runs[name].buckets
    assert table is not None
    apart = []
    for rank in (0, 1):
        mine = table[table["rank"] == rank]
        for step, said in zip((1, 2, 3), told[str(rank)][1:], strict=True):
            here = mine[mine["step"] == step]
            assert len(here) == 4
            backward = float(here["backward_ns"].max())
            assert backward == pytest.approx(said["backward_compute_time"], abs=0.6 * MS)
            after = float(here["after_ns"].max())
            overlap = said["backward_compute_comm_overlap_time"]
            apart.append(said["backward_comm_time"] - overlap - after)
    assert max(map(abs, apart)) < 4 * MS
    assert 0 < sum(apart) / len(apart) < 2.5 * MS


def test_a_planted_straggler_is_named_with_its_phase(runs: dict[str, Run]) -> None:
    """It sleeps 20 ms of each step in host code: the other rank waits that long, a little more."""
    found = next(each for each in runs["slow"].findings if each.code == "WB402")
    assert (found.rank, found.verdict, found.severity) == (1, "yes", "warning")
    assert "host code" in found.title
    assert 20_000 < found.evidence["phase_excess_us_per_step"] < 25_000
    assert found.saving_ns_per_step_at_most is not None
    assert 18 * MS < found.saving_ns_per_step_at_most < 30 * MS
    job = runs["ddp"].job
    assert job is not None
    assert job.straggler is None, "the same loop without the sleep"


def test_waits_that_overlap_count_once(runs: dict[str, Run]) -> None:
    """Two buckets wait at once for the sleeping rank: 20 ms in all, in a step of 38."""
    table = runs["slow"].imbalance
    assert table is not None
    assert 18 * MS < table["wait_ns"][0] < 30 * MS
    assert (table["wait_ns"] + table["transfer_ns"] < table["step_ns"]).all()


def test_sends_and_receives_of_a_pipeline_wait_and_hardly_move_data(runs: dict[str, Run]) -> None:
    """8 kB take less than a millisecond through the loopback: a pipeline's stages wait."""
    table = runs["pp"].communication
    assert table is not None
    assert set(table["collective"]) == {"send", "recv"}
    # four micro-batches of 8 × 256 float32, two steps, each way
    assert set(table["bytes"]) == {2 * 4 * 8 * 256 * 4}
    assert (table["hidden_ns"] <= 0.1 * table["total_ns"]).all()
    assert (table["wait_ns"] + table["transfer_ns"] == table["total_ns"]).all()
    assert (table["transfer_ns"] < table["calls"] * 1 * MS).all()
    assert "WB401" not in [each.code for each in runs["pp"].findings]
