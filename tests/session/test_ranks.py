"""A running training moves into ranks and back, with weights, optimizer and place in the epoch."""

import os
import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader

from tests.session.driving import run
from tests.session.loops import Numbered
from workbench.errors import RankError
from workbench.parallel.carried import Carried, collect, merged, put
from workbench.parallel.following import all_ranks
from workbench.parallel.job import PREFIX
from workbench.parallel.lockstep import ROW, Lockstep
from workbench.session import Session
from workbench.session.handover import Team
from workbench.settings import Parallel, Settings
from workbench.workload import Workload
from workbench.workload.epoch_order import EpochOrder

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("nothing_left")]

WAIT_S = 120.0


class Written(Numbered):
    """Samples that note in a file which process read them."""

    def __init__(self, place: Path) -> None:
        super().__init__(48)
        self.place = place

    def before(self, index: int) -> None:
        with self.place.open("a") as out:
            out.write(f"{index}\n")


class Odd(nn.Module):
    """Goes wrong in rank 1 at its n-th pass; in one process it never does."""

    def __init__(self, at: int, how: str) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 8)
        self.at, self.how, self.passes = at, how, 0

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        self.passes += os.environ.get("RANK") == "1"
        if self.passes > self.at:
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            while self.how == "hang":
                time.sleep(0.05)
            raise ValueError("planted in rank 1")
        return self.inner(inputs)


class Loop:
    """A small training of 48 samples in batches of 8: an epoch has six steps."""

    def __init__(self, first: nn.Module | None = None, data: Any = None) -> None:
        torch.manual_seed(7)
        first = first or nn.Sequential(nn.Linear(4, 16), nn.GELU(), nn.Linear(16, 8))
        self.model = nn.Sequential(first, nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 1))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        chance = torch.Generator().manual_seed(3)
        self.loader = DataLoader(data or Numbered(), batch_size=8, shuffle=True, generator=chance)
        scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 5)
        self.work = Workload(
            self.model,
            self.loader,
            loss=functional.mse_loss,
            optimizer=self.optimizer,
            scheduler=scheduler,
        )


def ranks_of_ours() -> list[str]:
    """Launcher, warden and ranks; this process has children of other tests too."""
    found = []
    for each in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            found.append(" ".join(each.cmdline()))
    return [one for one in found if "workbench.parallel" in one or "torch.distributed" in one]


def gone() -> bool:
    folders = list(Path(tempfile.gettempdir()).glob(f"{PREFIX}{os.getpid()}-*"))
    return not ranks_of_ours() and not folders


def until(session: Session, changes: int) -> None:
    end = time.monotonic() + WAIT_S
    while len(session.changes) < changes or session.state.doing.startswith("Switching"):
        assert time.monotonic() < end, session.state
        time.sleep(0.02)


def weights(loop: Loop) -> list[torch.Tensor]:
    return [p.detach().clone() for p in loop.model.parameters()]


def moved(mode: str, folder: Path) -> tuple[Loop, Session, Any]:
    """Two steps here, five in ranks, over the end of an epoch, and three here again."""
    place = folder / f"{mode}.numbers"
    loop = Loop(data=Written(place))
    session = Session(loop.work, folder=folder)
    run(session, 2)
    session.replace(Settings.from_json({"parallel": mode}))
    until(session, 1)
    run(session, 5)
    session.replace(Settings())
    until(session, 2 if mode != "none" else 1)
    run(session, 3)
    return loop, session, place


def as_in_one_process(mode: str, folder: Path) -> None:
    alone = Loop()
    with Session(alone.work, folder=folder) as session:
        run(session, 10)
        expected = session.telemetry.last(10)["loss"].tolist()
        session.stop(keep=True)
    loop, session, place = moved(mode, folder)
    with session:
        assert [change.error for change in session.changes] == [None, None]
        found = session.telemetry.last(10)
        # The very same batches in the same order, or the losses would be others.
        assert found["loss"].tolist() == pytest.approx(expected, rel=1e-4)
        assert found["samples"].tolist() == [8.0] * 10
        assert found["step"].tolist() == list(range(10))
        assert found["epoch"].tolist()[-1] == 1
        assert (found["step_ns"] > 0).all()
        assert gone()
        session.stop(keep=True)
    for mine, theirs in zip(weights(loop), weights(alone), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-5)
    state = loop.optimizer.state[loop.model[3].weight]
    assert float(state["step"]) == 10
    assert loop.optimizer.param_groups[0]["lr"] == alone.optimizer.param_groups[0]["lr"] == 0.0001
    read = [int(line) for line in place.read_text().split()]
    assert sorted(set(read)) == list(range(48))


def test_ddp_goes_on_where_the_training_stood_and_hands_everything_back(tmp_path: Path) -> None:
    as_in_one_process("ddp", tmp_path)


@pytest.mark.soak
@pytest.mark.parametrize("mode", ["fsdp", "tp", "pp"])
def test_every_mode_goes_on_where_the_training_stood(mode: str, tmp_path: Path) -> None:
    as_in_one_process(mode, tmp_path)


def test_a_rank_that_fails_puts_the_settings_of_before_back(tmp_path: Path) -> None:
    loop = Loop(Odd(2, "raise"))
    with Session(loop.work, Settings(clip_norm=5.0), folder=tmp_path) as session:
        run(session, 1)
        before = weights(loop)
        session.apply(Settings(parallel="ddp", clip_norm=5.0))
        until(session, 1)
        assert session.effective["world_size"] == 2
        run(session, 2)
        assert len(session.ranks) == 2
        assert all(each["step_ns"] for each in session.ranks)
        session.step_once()
        until(session, 2)
        said = str(session.changes[0].error)
        assert "planted in rank 1" in said
        assert "The 2 steps that the ranks trained are lost" in said
        assert session.state.settings == Settings(clip_norm=5.0)
        assert session.ranks == ()
        session.pause()
        assert gone()
        for mine, theirs in zip(weights(loop), before, strict=True):
            assert mine.shape == theirs.shape
        run(session, 1)  # and it goes on here


def test_stop_ends_ranks_of_which_one_hangs(tmp_path: Path) -> None:
    loop = Loop(Odd(1, "hang"))
    before = weights(loop)
    session = Session(loop.work, folder=tmp_path)
    run(session, 1)
    session.apply(Settings(parallel="ddp"))
    until(session, 1)
    run(session, 1)
    session.start()
    time.sleep(0.2)
    session.stop(timeout_s=20)
    assert session.state.status == "stopped"
    assert gone()
    assert all(torch.equal(a, b) for a, b in zip(weights(loop), before, strict=True))


def test_what_cannot_be_spread_is_refused_and_training_goes_on(tmp_path: Path) -> None:
    loop = Loop()
    with Session(loop.work, Settings(batch_size=6), folder=tmp_path) as session:
        run(session, 1)
        session.apply(Settings(parallel=Parallel(mode="ddp", world_size=4096)))
        run(session, 1)
        (change,) = session.changes
        assert "there are" in str(change.error)
        assert session.state.settings == Settings(batch_size=6)


def test_a_burst_of_ranks_says_what_records_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played(monkeypatch)
    with Session(Loop().work, folder=tmp_path) as session:
        run(session, 1)
        session.apply(Settings(parallel="ddp"))
        until(session, 1)
        burst = session.burst(2)
        session.start()
        assert burst.wait(WAIT_S)
        assert "wb.profile with the same settings records all ranks" in str(burst.error)


def test_an_error_of_ranks_that_nothing_is_to_blame_for_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played(monkeypatch, fails_at=2)
    with Session(Loop().work, Settings(parallel="ddp"), folder=tmp_path) as session:
        run(session, 2)
        session.step_once()
        end = time.monotonic() + WAIT_S
        while session.state.status != "failed":
            assert time.monotonic() < end, session.state
            time.sleep(0.01)
        assert "the ranks are gone" in str(session.state.error)
        assert session.state.settings.ranks is None
        run(session, 1)


def played(monkeypatch: pytest.MonkeyPatch, fails_at: int | None = None) -> None:
    """Ranks without processes: each step takes 10 ms, and nothing changes."""

    class Played:
        effective: dict[str, Any] = {"world_size": 2}  # noqa: RUF012
        notes = ("played",)
        lost = None
        device = torch.device("cpu")

        def __init__(self, *_: Any) -> None:
            self.steps, self.rows = 0, list[dict[str, float]]()

        def step(self) -> dict[str, float]:
            if self.steps == fails_at:
                raise RankError("the ranks are gone.")
            self.steps += 1
            self.rows = [{**dict.fromkeys(ROW, 1.0), "step_ns": 1e7}] * 2
            return all_ranks(self.rows, "ddp")

        def hand_back(self) -> None:
            pass

        def close(self) -> None:
            pass

    monkeypatch.setattr("workbench.session.course.Team", Played)


def test_what_all_ranks_tell_of_a_step() -> None:
    """Two shares of 4 samples are a batch of 8; the mean of their losses is its loss."""
    rows = [{**dict.fromkeys(ROW, 2.0), "samples": 4.0, "loss": loss} for loss in (1.0, 3.0)]
    found = all_ranks(rows, "ddp")
    assert (found["samples"], found["loss"], found["step_ns"]) == (8.0, 2.0, 2.0)
    assert all_ranks(rows, "tp")["samples"] == 4.0
    assert all_ranks(rows, "pp")["loss"] == 3.0, "only the last stage knows it"


def test_ranks_make_only_steps_that_are_allowed(tmp_path: Path) -> None:
    Lockstep.make(tmp_path, 2)
    caller, rank = Lockstep(tmp_path, 2), Lockstep(tmp_path, 2)
    caller.allow(1)
    assert rank.next(1)
    row = {**dict.fromkeys(ROW, 0.0), "loss": 4.5}
    rank.tell(0, 1, row)
    assert caller.done() == 0, "rank 1 has not made it"
    rank.tell(1, 1, row)
    assert caller.done() == 1
    assert caller.rows()[1]["loss"] == 4.5
    caller.end()
    assert not rank.next(2)


def test_the_rest_of_an_epoch_goes_elsewhere_and_on() -> None:
    """Of 0 to 7 the first three are trained, and two more were read ahead: 3 to 7 are left."""
    order = EpochOrder()
    order.sampler = range(8)
    reader = iter(order)
    assert [next(reader) for _ in range(5)] == [0, 1, 2, 3, 4]
    order.trained(3)
    rest = order.rest()
    assert rest == [3, 4, 5, 6, 7]
    other = EpochOrder()
    other.sampler = range(8)
    other.resume(rest or ())
    assert list(other) == [3, 4, 5, 6, 7]
    other.end()
    assert other.rest() is None
    assert list(other) == list(range(8)), "a new epoch"


def test_what_is_carried_is_the_same_afterwards() -> None:
    """AdamW with two groups, one of them of the loss: state goes by names, not by places."""

    def made() -> Workload:
        model, loss = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)), nn.PReLU()
        groups = [{"params": list(model.parameters())}, {"params": list(loss.parameters())}]
        optimizer = torch.optim.AdamW(groups, lr=0.1)
        return Workload(model, [torch.zeros(1)], loss=loss, optimizer=optimizer)

    torch.manual_seed(1)
    here, there = made(), made()
    there.loss(there.model(torch.randn(4, 3))).sum().backward()
    there.optimizers[0].step()
    there.optimizers[0].param_groups[1]["lr"] = 0.5
    carried = collect(there, None, {"rest": None}, whole=True)
    put(here, carried)
    for mine, theirs in zip(here.model.state_dict().values(), there.model.state_dict().values()):  # noqa: B905
        assert torch.equal(mine, theirs)
    assert torch.equal(here.loss.weight, there.loss.weight)
    again = collect(here, None, {"rest": None}, whole=True)
    assert again.optimizers[0]["groups"][1]["lr"] == 0.5
    for name, state in carried.optimizers[0]["state"].items():
        assert torch.equal(again.optimizers[0]["state"][name]["exp_avg"], state["exp_avg"])


def test_stages_are_one_model_again() -> None:
    first = Carried(
        model={"a": torch.ones(1)},
        loss={},
        optimizers=({"state": {"a": 1}, "groups": []},),
        schedulers=(),
        place={"rest": [1]},
    )
    last = Carried(
        model={"b": torch.zeros(1)},
        loss={},
        optimizers=({"state": {"b": 2}, "groups": []},),
        schedulers=(),
        place={},
    )
    found = merged([first, last])
    assert set(found.model) == {"a", "b"}
    assert found.optimizers[0]["state"] == {"a": 1, "b": 2}
    assert found.place == {"rest": [1]}


def test_a_team_needs_ranks() -> None:
    with pytest.raises(AssertionError, match="need ranks"):
        Team(Loop().work, Settings(), None)  # type: ignore[arg-type]
