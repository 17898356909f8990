"""Real traces compared, against numbers that this file computes with json and pandas alone."""

import gzip
import json
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from workbench.run.compare import Comparison, compare
from workbench.run.rank import RankAnalysis
from workbench.run.run import Run
from workbench.trace import read

pytestmark = [pytest.mark.slow, pytest.mark.traces]

KINETO = "pytorch__kineto/tb_plugin__samples__resnet50_num_workers_"
NO_WORKERS = f"{KINETO}0__worker0.1623143089861.pt.trace.json.gz"
FOUR_WORKERS = f"{KINETO}4__worker0.1623212756351.pt.trace.json.gz"
LENS = "AMD-AGI__TraceLens/tests__traces__"
SAM = "pytorch-labs__segment-anything-fast/amg_example__asdf_"
PROCESS = "sidnb13__torch-profiling-tutorial/log__transformer__dc3b0e7228dd_851.17522155"


def run_of(path: Path) -> Run:
    """A Run over one trace, read without a cache beside it."""
    rank = RankAnalysis(source=path.name, rank=None, read=lambda: read(path))
    return Run(name=path.name, ranks=[rank], traces=[path])


def compared(root: Path, first: str, second: str) -> Comparison:
    return compare(run_of(root / first), run_of(root / second))


@lru_cache(maxsize=2)
def plain(path: Path) -> tuple[pd.DataFrame, int]:
    """Device work launched in a step: name, step, dur in µs; and how many steps there are.

    A step is a host range ``ProfilerStep#N``; work is joined to its launch by correlation.
    """
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    steps: dict[str, tuple[float, float]] = {}
    calls: dict[int, float] = {}
    work: list[dict[str, Any]] = []
    for event in events:
        if event.get("ph") != "X":
            continue
        kind, args = str(event.get("cat", "")).lower(), event.get("args", {})
        if event["name"].startswith("ProfilerStep#") and not kind.startswith("gpu"):
            steps[event["name"]] = (event["ts"], event["ts"] + event["dur"])
        elif kind in ("runtime", "cuda_runtime", "cuda_driver"):
            calls[args.get("correlation", -1)] = event["ts"]
        elif kind in ("kernel", "memcpy", "memset", "gpu_memcpy", "gpu_memset"):
            work.append({"name": event["name"], "dur": event["dur"], "id": args["correlation"]})
    table = pd.DataFrame(work)
    called = table["id"].map(calls)
    table["step"] = None
    for name, (start, end) in steps.items():
        table.loc[(called >= start) & (called < end), "step"] = name
    return table[table["step"].notna()], len(steps)


def per_step_us(path: Path) -> pd.DataFrame:
    table, steps = plain(path)
    grouped = table.groupby("name")["dur"].agg(["sum", "count"]) / steps
    assert isinstance(grouped, pd.DataFrame)
    return grouped


def test_every_kernel_of_resnet50_has_the_plain_sums(traces_root: Path) -> None:
    found = compared(traces_root, NO_WORKERS, FOUR_WORKERS)
    assert found.where[0].steps == (6, 6)
    table = found.kernels
    assert table is not None
    for side, path, name in (
        ("first", NO_WORKERS, "name_first"),
        ("second", FOUR_WORKERS, "name"),
    ):
        other = {"first": "added", "second": "removed"}[side]
        own = table[table["change"] != other].set_index(name)
        wanted = per_step_us(traces_root / path)
        assert set(own.index) == set(wanted.index)
        assert np.allclose(own[f"{side}_ns"] / 1000, wanted["sum"].reindex(own.index))
        assert np.allclose(own[f"calls_{side}"], wanted["count"].reindex(own.index))


def test_only_names_of_one_side_are_added_or_removed(traces_root: Path) -> None:
    table = compared(traces_root, NO_WORKERS, FOUR_WORKERS).kernels
    assert table is not None
    before, after = (
        set(per_step_us(traces_root / path).index) for path in (NO_WORKERS, FOUR_WORKERS)
    )
    renamed = table[table["match"].str.startswith("renamed")]
    assert set(table[table["change"] == "removed"]["name"]) == (
        before - after - set(renamed["name_first"])
    )
    assert set(table[table["change"] == "added"]["name"]) == after - before - set(renamed["name"])


def test_workers_took_the_wait_for_data_out_of_the_step(traces_root: Path) -> None:
    """By hand, of 393 ms of idle 284 to 287 lie under the loader without workers, 2.8 with four.

    Five of the six steps have a step time: about 56.8 and 0.6 ms a step.
    """
    found = compared(traces_root, NO_WORKERS, FOUR_WORKERS)
    assert found.breakdown is not None
    row = found.breakdown.set_index("name").loc["input"]
    assert row["change"] == "faster"
    assert row["first_ns"] / 1e6 == pytest.approx(285.5 / 5, rel=0.02)
    assert row["second_ns"] / 1e6 == pytest.approx(2.8 / 5, rel=0.05)
    assert found.verdict == "cannot_tell"
    assert "no step times of record" in found.sentence
    under = found.profiled
    assert under is not None
    sums = [found.breakdown[side].sum() for side in ("first_ns", "second_ns")]
    assert sums == pytest.approx([np.mean(under.first_ns), np.mean(under.second_ns)])


def test_a_real_trace_does_not_differ_from_itself(traces_root: Path) -> None:
    found = compared(traces_root, NO_WORKERS, NO_WORKERS)
    assert found.differences == ()
    for table in (found.breakdown, found.families, found.kernels, found.operators):
        assert table is not None
        assert (table["difference_ns"].dropna() == 0).all()
        assert set(table["change"]) == {"same"}


def test_two_cycles_of_one_process_name_nothing(traces_root: Path) -> None:
    """The same loop profiled twice within a second: what differs is noise."""
    found = compared(
        traces_root,
        f"{PROCESS}73993169006.pt.trace.json.gz",
        f"{PROCESS}74025896717.pt.trace.json.gz",
    )
    for table in (found.breakdown, found.families, found.kernels, found.operators):
        assert table is not None
        assert set(table["change"]) <= {"same"}


def all_us(path: Path, fits: Callable[[str], bool]) -> float:
    table, _ = plain(path)
    return float(table[table["name"].map(fits)]["dur"].sum())


@pytest.mark.parametrize("model", ["Qwen_Qwen1.5-0.5B-Chat__1016005"])
def test_h100_and_mi300_are_compared_by_family(traces_root: Path, model: str) -> None:
    """Names of cuBLAS say gemm, AMD's begin with Cijk: no name is on both sides, the family is."""
    first, second = (f"{LENS}{maker}__{model}.json.gz" for maker in ("h100", "mi300"))
    found = compared(traces_root, first, second)
    assert found.families is not None
    gemm = found.families.set_index("name").loc["gemm"]
    cublas = all_us(traces_root / first, lambda n: "gemm" in n.lower() or "splitK" in n)
    tensile = all_us(traces_root / second, lambda n: n.startswith("Cijk_"))
    assert gemm["first_ns"] / 1000 == pytest.approx(cublas, rel=0.001)
    assert gemm["second_ns"] / 1000 == pytest.approx(tensile, rel=0.001)
    assert gemm["change"] == "cannot_tell", "one step on each side"
    assert any("compare by family" in note for note in found.notes)
    assert "devices" in [d.name for d in found.differences]


def test_half_precision_is_told_before_the_times(traces_root: Path) -> None:
    found = compared(traces_root, f"{SAM}False.json.gz", f"{SAM}True.json.gz")
    types = next(d for d in found.differences if d.name == "types")
    assert (types.first, types.second) == ("float32", "bfloat16")
    assert found.where[0].per == "window"
    assert not {"faster", "slower"} & set(
        found.families["change"] if found.families is not None else ()
    )


PAIRS = [
    (
        "pytorch__kineto/docs__traces__before_fix_trace.json",
        "pytorch__kineto/docs__traces__after_fix_trace.json",
    ),
    *(
        (
            f"facebookresearch__HolisticTraceAnalysis/tests__data__trace_compare__{a}.json.gz",
            f"facebookresearch__HolisticTraceAnalysis/tests__data__trace_compare__{b}.json.gz",
        )
        for a, b in [("base__base", "test__test")]
    ),
    *(
        (f"{LENS}h100__{model}.json.gz", f"{LENS}mi300__{model}.json.gz")
        for model in (
            "Falconsai_nsfw_image_detection__1016002",
            "gaunernst_bert-small-uncased__1016001",
        )
    ),
    (
        "harryjmoss__particle_transformer/gpu_working_chrome_trace.json.gz",
        "harryjmoss__particle_transformer/profiler_trace.json",
    ),
    (
        "NVIDIA__Fuser/report1.sqlite",
        "volcengine__verl/verl__~__profiles__plugins__profile__2025_06_30_23_53_59"
        "__localhost_9012.xplane.pb",
    ),
    ("JC-me-coding__dtu_mlops/trace.json.gz", "Lightning-AI__pytorch-lightning/0_trace.json"),
    ("pytorch__PiPPy/pipe_visualized.json", NO_WORKERS),
]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_any_two_real_traces_are_compared_or_said_to_lack_something(
    traces_root: Path, first: str, second: str
) -> None:
    found = compared(traces_root, first, second)
    text = repr(found)
    assert max(map(len, text.splitlines())) <= 80
    json.dumps(found.to_json(), allow_nan=False, default=str)
    for each in found.where:
        for name in ("breakdown", "kernels", "families", "operators"):
            assert (getattr(each, name) is None) == (name in each.reasons)
    assert found.verdict == "cannot_tell"
    assert "faster than" not in text
