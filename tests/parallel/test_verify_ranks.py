"""Does spreading a loop help? Measured in fresh processes, in turns, with the numbers compared."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import TensorDataset

import workbench as wb
from tests.tuning.made import block
from workbench.errors import RankError
from workbench.machine import usable_cpus
from workbench.recording.compilation import compile_counters
from workbench.recording.progress import Progress
from workbench.settings import Parallel, Settings
from workbench.tuning import fresh, running
from workbench.tuning.block import About, Measuring
from workbench.tuning.candidates import Shares, from_offers
from workbench.tuning.fair import fair_blocks
from workbench.tuning.numbers import parity
from workbench.tuning.outcome import outcome_of
from workbench.tuning.parity import Numbers

DDP = Settings(parallel=Parallel(mode="ddp", world_size=2))


def training(dropout: float = 0.0) -> wb.Workload:
    torch.manual_seed(0)
    blocks = [
        nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16), nn.Dropout(dropout))
        for _ in range(2)
    ]
    model = nn.Sequential(*blocks, nn.Linear(16, 4))
    data = TensorDataset(torch.randn(64, 16), torch.randint(4, (64,)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    return wb.Workload(
        model, data, loss=functional.cross_entropy, optimizer=optimizer, batch_size=8
    )


def measuring(**more: Any) -> Measuring:
    return Measuring(progress=Progress(shown=False, title=""), **more)


def test_all_sides_are_measured_apart_in_turns_where_one_needs_ranks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[tuple[str, int | None]] = []

    def played(function: Any, work: Any, settings: Settings, order: Any, **_: Any) -> Any:
        asked.append((str(settings), order["count"]))
        about = About(
            effective={"batch_size": 8, "workers": 0},
            compilation=compile_counters(),
            notes=(),
            warnings=(),
        )
        if order["count"] is None:
            return [((10**7,) * 5, about)]
        slow = 2.0 if settings.ranks else 1.0
        return [(block([10 * slow] * order["count"], order["position"]), about)]

    monkeypatch.setattr(fresh, "in_ranks", played)
    runs = fair_blocks(training(), [None, DDP, None], steps=4, blocks=2, time_limit_s=60)
    a, b = "as it is", f"{DDP}"
    assert asked[:2] == [(a, None), (b, None)], "each setting is warmed up once"
    assert asked[2:] == [(a, 4), (b, 4), (a, 4), (a, 4), (b, 4), (a, 4)]
    assert runs.trials[1].step_ns == 20e6
    assert runs.ended == "finished"


def test_what_all_ranks_did_together() -> None:
    """Two ranks of 4 samples each are the batch of 8; the mean of their losses is its loss."""
    mine = block([1.0, 1.0], samples=4, losses=(1.0, 2.0), delay_ns=(5, 5), delay_share=0.5)
    every: list[dict[str, Any]] = [
        {"losses": [1.0, 2.0], "memory": [100, None, 7]},
        {"losses": [3.0, 2.0], "memory": [150, None, 9]},
    ]
    found = fresh.together(mine, every, DDP)
    assert found.samples == (8, 8)
    assert found.losses == (2.0, 2.0)
    assert (found.peak_rss_bytes, found.workers_bytes, found.device_peak_bytes) == (250, None, 9)
    assert found.undisturbed_ns is None, "the other rank is no other program"
    stages = fresh.together(mine, every, Settings(parallel="pp"))
    assert (stages.samples, stages.losses) == ((4, 4), (3.0, 2.0))


def test_numbers_of_all_ranks() -> None:
    """Stages hold gradients of 3 and 4, so all of them have length 5; only the last has a loss."""
    first = Numbers(losses=(None,), gradient_norms=(3.0,), output=1)
    last = Numbers(losses=(2.0,), gradient_norms=(4.0,), output=2)
    found = running.together([first, last], Parallel(mode="pp"))
    assert (found.losses, found.gradient_norms, found.output) == ((2.0,), (5.0,), None)
    shares = [Numbers(losses=(n,), gradient_norms=(3.0,)) for n in (1.0, 2.0)]
    found = running.together(shares, Parallel(mode="ddp"))
    assert (found.losses, found.gradient_norms) == ((1.5,), (3.0,))


def test_shared_processors_are_said() -> None:
    said = fresh.sharing_note(training(), DDP) or ""
    assert f"2 ranks share {usable_cpus()} processors" in said
    assert "Nothing was added" in said
    assert fresh.sharing_note(training(), Settings()) is None


def test_a_failing_rank_is_a_result_without_its_traceback() -> None:
    error = RankError("rank 1 of 2 failed first: ValueError: odd\n\nTraceback (most recent call)")
    assert outcome_of(error) == ("error", "RankError: rank 1 of 2 failed first: ValueError: odd")


def test_a_search_tries_every_mode_when_it_is_asked_for_by_name() -> None:
    found = from_offers(training(), {}, Shares(), ("parallel",))
    tried = [str(each.change.parallel) for each in found if each.change.ranks]
    assert tried == ["ddp", "fsdp", "tp", "pp"]
    assert not any(each.refused for each in found if each.change.ranks)
    assert not any(each.change.ranks for each in from_offers(training(), {}, Shares(), None))
    work = training()
    without = wb.Workload(work.model, work.data, loss=work.loss, batch_size=8)
    again = from_offers(without, {}, Shares(), ("parallel",))
    why = {str(each.change.parallel): each.refused for each in again}
    assert "needs model, loss=loss(output, target) and optimizer" in (why["pp"] or "")


@pytest.mark.slow
def test_a_block_in_two_ranks() -> None:
    """The batches are those of one process: 8 samples a step, and the first loss is its own."""
    work = training()
    found = fresh.measure(work, DDP, measuring(), position=3, count=4, time_limit_s=300, whole=1)
    assert found is not None
    made, about = found
    assert made.position == 3
    assert len(made.left_out_ns) >= fresh.LEAD
    assert len(made.step_ns) + len(made.left_out_ns) == fresh.LEAD + 4
    assert set(made.samples) == {8}
    assert len(made.losses) == fresh.LEAD + 4
    assert about.effective["world_size"] == 2
    assert about.effective["batch_size"] == 8


@pytest.mark.slow
def test_nothing_is_started_for_somebody_who_wants_no_more() -> None:
    stopped = measuring(interrupted=lambda: True)
    assert fresh.measure(training(), DDP, stopped, position=0, count=4, time_limit_s=9) is None


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["ddp", "fsdp", "tp", "pp"])
def test_every_mode_computes_the_same(mode: str) -> None:
    found = parity(training(dropout=0.1), Settings.from_json({"parallel": mode}), time_limit_s=300)
    assert found.verdict == "as_expected", found
    assert "each rank draws" in found.reason
    assert found.gradient_difference is not None


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_verify_keeps_or_reverts_ranks(tmp_path: Path) -> None:
    """Ranks of a tiny model on shared processors wait for each other: they cannot be faster.

    Every block starts processes, which on a busy machine takes longer than what it measures.
    """
    asked: dict[str, Any] = {"steps": 5, "blocks": 3, "time_limit_s": 1000}
    found = wb.verify(training(), DDP, folder=tmp_path, progress=False, **asked)
    assert found.advice != "keep", found.sentence
    assert found.parity is not None
    assert found.parity.ok
    assert found.after is not None
    assert len(found.after.ranks) == 2
    assert any("ranks share" in note for note in found.notes)
