"""A Run divides its exposed wait for input: on a device, and where the loop itself waits."""

import json
import time
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.utils.data import DataLoader

import workbench as wb
from tests.analysis.stalls.truth import Clocked
from tests.kineto import Kineto
from tests.profiling.loops import workload
from tests.reporting import sample
from workbench.analysis.stalls.parts import PARTS


def test_idle_time_for_input_is_divided_step_by_step(tmp_path: Path) -> None:
    """The device idles from the end of one kernel to the next; 400 µs of it are the loader's."""
    run = wb.open(sample.measured_run(tmp_path, "run", step_ms=1.2, loader=True))
    table, parts = run.stalls, run.step_parts
    assert table is not None
    assert parts is not None
    assert table["exposed_ns"].tolist() == parts["input"].tolist()
    assert (table[list(PARTS)].sum(axis=1) == table["exposed_ns"]).all()
    # Step 5 is warm: 250 decoded, 80 put together, 65 to arrive, 5 until the call came back.
    (warm,) = table[table["step"] == 5].to_dict("records")
    expected = {"decode": 250_000, "collate": 80_000, "transfer": 65_000, "other": 5_000}
    assert {name: warm[name] for name in PARTS if warm[name]} == expected
    # Step 2 is cold: 400 of the 650 µs for its samples were reads.
    (cold,) = table[table["step"] == 2].to_dict("records")
    assert cold["storage"] == round(250_000 * 400 / 650)


def test_the_document_and_the_rules_have_the_same_split(tmp_path: Path) -> None:
    run = wb.open(sample.measured_run(tmp_path, "run", step_ms=1.2, loader=True))
    told = run.summary.to_json()["ranks"][0]["input"]
    assert sum(told["stalls_us"].values()) == told["exposed_us"]
    assert sum(told["stalls_other_us"].values()) == told["stalls_us"]["other"]
    assert json.loads(json.dumps(told)) == told
    from workbench.run.loader_facts import loader_facts

    facts: Any = loader_facts(run)["stalls_ns"]
    assert {name: ns / 1000 for name, ns in facts.items()} == told["stalls_us"]


def test_every_chart_of_the_loader_is_drawn_and_folded_away(tmp_path: Path) -> None:
    run = wb.open(sample.measured_run(tmp_path, "run", step_ms=1.2, loader=True))
    more = run.more("loader")
    assert [chart.title.partition(" ")[0] for chart in more.charts] == [
        "46", "Here", "The", "Making",
    ]  # fmt: skip
    assert all(chart.table is not None and chart.alt for chart in more.charts)


def test_a_trace_alone_says_why_there_is_no_split(tmp_path: Path) -> None:
    trace = Kineto()
    trace.step(0, 0, 100)
    trace.loader(0, 60)
    trace.op("aten::mm", 60, 30)
    run = wb.open(trace.write(tmp_path / "trace.json"))
    assert run.stalls is None
    assert run.summary.not_measured["stalls"] == "what the loader did was not recorded"
    assert run.summary.to_json()["ranks"][0]["input"]["stalls_us"] is None
    assert not run.more("loader")


class Dataset(torch.utils.data.Dataset[Any]):
    """Samples that sleep a millisecond."""

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        time.sleep(0.001)
        return torch.ones(4), torch.tensor(0)


class Together:
    """Collate that takes 20 ms, and notes how long each call took by its own clocks."""

    able_ns: ClassVar[list[int]] = []
    """Wall time of each call without what it was ready with no processor free; of all copies."""

    def __call__(self, samples: list[Any]) -> list[Tensor]:
        clock = Clocked()
        time.sleep(0.02)
        made = [torch.stack(column) for column in zip(*samples, strict=True)]
        clock.stage()
        ((start, end, _, delay),) = clock.rows
        self.able_ns.append(end - start - delay)
        return made


def test_a_profile_on_the_cpu_finds_the_slow_stage_and_sums_exactly() -> None:
    """Its own clocks are the truth: with a load beside it, sleep ends late for want of a processor.

    The kernel counts that wait from when the thread was to wake, so sleep may be less than planted.
    """
    collate = Together()
    loader = DataLoader(Dataset(), batch_size=4, collate_fn=collate)
    run = wb.profile(workload(loader), steps=4, progress=False)
    table, rank = run.stalls, run.rank()
    assert table is not None
    assert rank.stalls is not None
    assert table["exposed_ns"].sum() == rank.exposed_input_ns
    sums = table[list(PARTS)].sum()
    assert sums.sum() == rank.exposed_input_ns
    # What a busy machine takes between the two clocks is taken from single steps, not from each.
    assert table["collate"].max() >= 0.9 * min(collate.able_ns)
    assert sums["collate"] >= 0.5 * len(table) * min(collate.able_ns)
    assert rank.stalls.workers == 0
