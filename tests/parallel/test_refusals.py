"""What cannot be spread is refused in one sentence, most of it before any process starts."""

import re
import threading
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import workbench as wb
from workbench.errors import RankError, SettingError, WorkbenchError, WorkloadError
from workbench.parallel.carrying import pack, unpack
from workbench.parallel.failures import Failure, explain
from workbench.parallel.launch import launch
from workbench.parallel.rank import Rank
from workbench.parallel.spread import spread
from workbench.settings import Parallel, Settings
from workbench.workload import prepare


def work(model: nn.Module | None = None, **more: Any) -> wb.Workload:
    torch.manual_seed(0)
    model = model or nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    data = TensorDataset(torch.randn(8, 4), torch.randint(2, (8,)))
    usual: dict[str, Any] = {
        "loss": functional.cross_entropy,
        "optimizer": torch.optim.SGD(model.parameters(), lr=0.1),
        "batch_size": 4,
    }
    return wb.Workload(model, more.pop("data", data), **{**usual, **more})


@pytest.mark.parametrize(
    ("value", "match"),
    [
        ("horovod", "parallel='horovod' is unknown; use one of none, dp, ddp, fsdp, tp, pp"),
        (3, "must be one of none, dp"),
        ({"world_size": 2}, "names no mode"),
        ({"mode": "ddp", "ranks": 2}, "unknown setting 'ranks' of parallel"),
        ({"mode": "ddp", "world_size": 1}, "world_size=1 must be at least 2"),
        ({"mode": "ddp", "backend": "tcp"}, "backend='tcp' is unknown; use one of nccl, gloo"),
        ({"mode": "tp", "bucket_mb": 25}, "bucket_mb=25 acts in parallel='ddp' only"),
        ({"mode": "ddp", "bucket_mb": 0}, "must be a number of MiB above 0"),
        ({"mode": "ddp", "static_graph": 1}, "static_graph=1 must be True, False or None"),
        ({"mode": "fsdp", "world_size": 4, "shard_degree": 3}, "does not divide world_size=4"),
        ({"mode": "pp", "world_size": 2, "split": ["a", "b"]}, "split names 2 modules"),
        ({"mode": "tp", "plan": [["a", "diagonal"]]}, "must be pairs of a module's name"),
        (
            {"mode": "ddp", "static_graph": True, "find_unused_parameters": True},
            "finds unused parameters once by itself",
        ),
    ],
)
def test_a_record_that_means_nothing_is_refused(value: Any, match: str) -> None:
    with pytest.raises(SettingError, match=match):
        Settings(parallel=value)


def test_a_record_survives_json() -> None:
    one = Parallel(mode="tp", world_size=2, plan=(("up", "colwise"), ("down", "rowwise")))
    assert Settings.from_json(Settings(parallel=one).to_json()).parallel == one
    assert Settings(parallel="ddp").to_json() == {"parallel": "ddp"}
    assert hash(Settings(parallel=one)) == hash(Settings(parallel=one))


def test_a_running_training_stays_in_its_process() -> None:
    with pytest.raises(SettingError, match=r"processes of its own, which wb\.profile starts"):
        prepare(work(), Settings(parallel="ddp")).__enter__()
    with prepare(work(), Settings(parallel="none")) as training:
        assert training.step(next(training.batches())) is not None


@pytest.mark.parametrize(
    ("parallel", "match"),
    [
        (Parallel(mode="ddp", world_size=4096), "4096 ranks cannot act: there are"),
        (Parallel(mode="ddp", backend="xccl"), "backend='xccl'"),
        (Parallel(mode="ddp", backend="mpi"), "backend='mpi'"),
        (Parallel(mode="dp"), "DataParallel needs 2 CUDA devices.*use parallel='ddp'|Use parallel"),
    ],
)
def test_what_this_machine_lacks_is_refused_before_a_process_starts(
    parallel: Parallel, match: str, tmp_path: Any
) -> None:
    with pytest.raises(SettingError, match=match):
        wb.profile(work(), Settings(parallel=parallel), folder=tmp_path, progress=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        (Settings(parallel="pp", compile=True), "stages that are cut from the model as it is"),
        (Settings(parallel="tp", clip_norm=1.0), "would clip by a part of their norm"),
        (Settings(parallel="tp", channels_last=True), "made for the usual layout"),
        (Settings(parallel="tp", optimizer="fused"), "divided and whole weights one by one"),
        (Settings(parallel="tp", precision="fp16"), "a scale of gradients would have to be agreed"),
        (Settings(parallel="fsdp", compile=True), "weights come and go around every block"),
        (Settings(parallel="pp", accumulation=2), "accumulation=2 is not taken together"),
        (Settings(parallel="fsdp", precision="fp16"), "Parallel\\(mode='fsdp', param_dtype"),
    ],
)
def test_settings_that_do_not_go_together_yet_are_refused(
    settings: Settings, match: str, tmp_path: Any
) -> None:
    with pytest.raises(SettingError, match=match):
        wb.profile(work(), settings, folder=tmp_path, progress=False)


def test_training_cannot_be_kept(tmp_path: Any) -> None:
    with pytest.raises(SettingError, match="keep_training=True cannot act"):
        wb.profile(work(), Settings(parallel="ddp"), folder=tmp_path, keep_training=True)


def test_a_pipeline_needs_a_loss_and_no_step(tmp_path: Any) -> None:
    own = work(loss=None, step=lambda model, batch: model(batch[0]).sum())
    with pytest.raises(SettingError, match="no step of your own"):
        wb.profile(own, Settings(parallel="pp"), folder=tmp_path, progress=False)


def test_a_rank_starts_no_ranks(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(SettingError, match="already rank 1 of 2"):
        wb.profile(work(), Settings(parallel="ddp"), folder=tmp_path, progress=False)


class Locked(TensorDataset):
    """Holds what no process can be given."""

    def __init__(self) -> None:
        super().__init__(torch.randn(8, 4), torch.randint(2, (8,)))
        self.lock = threading.Lock()


def test_a_part_that_cannot_be_carried_is_named(tmp_path: Any) -> None:
    with pytest.raises(WorkloadError, match=r"data cannot be carried to the ranks.*lock"):
        pack(tmp_path, print, {"work": work(data=Locked())})
    with pytest.raises(WorkloadError, match=r"data cannot be carried.*generator"):
        pack(tmp_path, print, {"work": work(data=iter_twice(), batch_size=None)})


def iter_twice() -> Any:
    loader = DataLoader(TensorDataset(torch.randn(8, 4)), 4)
    loader.kept = (n for n in range(3))  # type: ignore[attr-defined]
    return loader


def test_what_is_carried_keeps_what_belongs_together(tmp_path: Any) -> None:
    """A lambda and a class of this very function travel by value; parameters stay shared."""

    class Net(nn.Linear):
        pass

    mine = work(Net(4, 2), loss=lambda out, target: (out - target[:, None]).mean())
    pack(tmp_path, print, {"work": mine})
    function, payload = unpack(tmp_path)
    assert function is print
    carried = payload["work"]
    assert carried.optimizers[0].param_groups[0]["params"][0] is carried.model.weight
    assert torch.equal(carried.model.weight, mine.model.weight)


def failure(rank: int, at: int, message: str, kind: str = "RuntimeError") -> Failure:
    return Failure(rank=rank, time_ns=at, kind=kind, message=message, text=f"trace of {rank}")


LOG = """
  rank      : 1 (local_rank: 1)
  exitcode  : {code} (pid: 12)
"""


def test_the_first_rank_that_failed_by_itself_speaks() -> None:
    peer = failure(0, 1, "Connection closed by peer")
    said = str(explain([peer, failure(1, 2, "planted", "ValueError")], [], "", 2))
    assert "rank 1 of 2 failed first" in said
    assert "ValueError: planted" in said
    assert "trace of 1" in said


def test_an_error_of_ours_keeps_its_kind() -> None:
    found = explain([failure(1, 2, "x cannot act", "SettingError")], [], "", 2)
    assert type(found) is SettingError
    assert str(found) == "x cannot act"
    assert "rank 1 of 2" in found.__notes__[0]


@pytest.mark.parametrize(
    ("code", "words"),
    [(-9, "killed by SIGKILL.*memory ran out"), (-11, "killed by SIGSEGV"), (7, "exit code 7")],
)
def test_a_rank_that_dies_without_a_word_is_named(code: int, words: str) -> None:
    """Rank 0 only tells that its peer is gone."""
    peer = failure(0, 1, "Connection reset by peer")
    found = explain([peer], [1], LOG.format(code=code), 2)
    with pytest.raises(RankError, match=words):
        raise found


MPIRUN = """
mpirun noticed that process rank 1 with PID 0 on node vm exited on signal 9 (Killed).
"""
MPIRUN_CODE = """
  Process name: [[45161,1],1]
  Exit code:    7
"""


@pytest.mark.parametrize(
    ("log", "words"), [(MPIRUN, "rank 1 of 2 was killed by SIGKILL"), (MPIRUN_CODE, "exit code 7")]
)
def test_what_open_mpi_says_of_a_dead_rank_is_understood(log: str, words: str) -> None:
    """It ends rank 0 with it, which says nothing."""
    assert words in str(explain([], [0, 1], log, 2))


class Forked(nn.Module):
    """A branch that no step uses."""

    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.used(inputs)


class Mixing(nn.Module):
    """Between the divided layers it takes a mean over all features, which a rank has half of."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = self.fc1(inputs)
        return self.fc2(hidden - hidden.mean(-1, keepdim=True))


class Viewing(Mixing):
    """It names the inner size, of which a rank has half."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return self.fc2(self.fc1(inputs).view(-1, 4))


def tied() -> nn.Sequential:
    """The same layer comes first and last."""
    layer = nn.Linear(4, 4)
    return nn.Sequential(layer, nn.Linear(4, 4), layer)


CASES: dict[str, tuple[Any, Settings, str]] = {
    "mixing": (Mixing, Settings(parallel="tp"), "the model gives something else than before"),
    "viewing": (Viewing, Settings(parallel="tp"), "does not bear layers that are divided"),
    "short": (lambda: nn.Sequential(nn.Linear(4, 2)), Settings(parallel="pp"), "too few for 2"),
    "micro": (
        None,
        Settings(parallel=Parallel(mode="pp", micro_batches=3)),
        "does not divide into 3 micro-batches",
    ),
    "tied": (
        tied,
        Settings(parallel=Parallel(mode="pp", split=("1",))),
        "0.bias, 0.weight is used by several stages",
    ),
    "uneven": (None, Settings(parallel="ddp", batch_size=3), "3 samples does not divide by 2"),
    "frozen": (
        lambda: nn.Linear(4, 2).requires_grad_(False),
        Settings(parallel="ddp"),
        "no parameter of the model needs a gradient",
    ),
    "bf16": (
        None,
        Settings(parallel=Parallel(mode="ddp", compression="bf16")),
        "compression='bf16' cannot act on a CPU",
    ),
    "unused": (Forked, Settings(parallel="ddp"), "unused.weight, unused.bias.* got no gradient"),
}


def all_cases(rank: Rank, payload: dict[str, Any]) -> dict[str, str]:
    rank.join("gloo", 60)
    said = {}
    for name, (model, settings) in payload["cases"].items():
        try:
            made = payload["work"](None if model is None else model())
            with spread(made, settings, rank) as training:
                for _ in range(3):
                    training.step(next(training.batches()))
        except WorkbenchError as error:
            said[name] = f"{type(error).__name__}: {error}"
    return said


@pytest.fixture(scope="module")
def said() -> dict[str, str]:
    cases = {name: (model, settings) for name, (model, settings, _) in CASES.items()}
    first, _ = launch(all_cases, {"cases": cases, "work": work}, world_size=2, time_limit_s=120)
    return first  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_what_only_the_ranks_can_see_is_refused_there(said: dict[str, str], name: str) -> None:
    assert re.search(CASES[name][2], said[name])
    assert said[name].startswith("SettingError: ")
