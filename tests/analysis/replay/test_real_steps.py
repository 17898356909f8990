"""Steps that others recorded: unchanged they are exact, and what is known of them comes out."""

import shutil
from pathlib import Path

import pytest

import workbench as wb
from workbench.analysis.evidence import gather_evidence
from workbench.analysis.launches import join_launches
from workbench.analysis.replay.answers import critical_path, replay_steps, reproduction, scenarios
from workbench.analysis.replay.replay import Replay
from workbench.analysis.steps import find_steps
from workbench.trace.cache import open_trace

pytestmark = [pytest.mark.slow, pytest.mark.traces]

KINETO = "pytorch__kineto/tb_plugin__samples__resnet50_num_workers"
HTA = "facebookresearch__HolisticTraceAnalysis/tests__data__"
TORCHREC = (
    "pytorch__torchrec/examples__golden_training__trace__sst_long_a2a_optimizer_2__"
    "ip-172-31-16-248.us-east-2.compute.internal_"
)

TRAINING = (
    f"{KINETO}_0__worker0.1623143089861.pt.trace.json.gz",
    f"{KINETO}_0__worker0.pt.trace.json.gz",
    f"{KINETO}_4__worker0.1623212756351.pt.trace.json.gz",
    f"{KINETO}_4__worker0.pt.trace.json.gz@7bd25bd0.gz",
    f"{HTA}ns_resolution_trace__rank-0.Apr_03_18_51_38.1102.pt.trace.json.gz",
    f"{HTA}nccl_parser_config__nccl_data.json.gz",
    f"{HTA}timeline_analysis__sampled_rank-0.json.gz",
    "AMD-AGI__TraceLens/tests__traces__mi300__resnet_act_checkpoint.json.gz",
    "CentML__DeepView.Profile/filtered_slices.json.gz",
    "pytorch__benchmark/trace.json.gz",
    f"{TORCHREC}24049.1698955364380200319.pt.trace.json.gz",
    f"{TORCHREC}24051.1698955364366973038.pt.trace.json.gz",
)


def replayed(path: Path) -> Replay:
    trace = open_trace(path)
    launches = join_launches(trace)
    steps = find_steps(trace, launches)
    found = replay_steps(gather_evidence(trace, launches, steps), steps)
    assert isinstance(found, Replay)
    return found


@pytest.mark.parametrize("name", TRAINING)
def test_replayed_unchanged_a_step_takes_what_it_took(traces_root: Path, name: str) -> None:
    """To the nanosecond; of at most 1 % of the path nobody knows what it waited for.

    What a repeated step cannot be shorter than is another calculation from the same records: it
    comes out within 15 % of the recorded time.
    """
    replay = replayed(traces_root / name)
    found = reproduction(replay)
    assert found.residual_ns == 0
    assert found.share < 0.01
    path = critical_path(replay)
    assert (path.start[1:] == path.end[:-1]).all()
    assert (path.length, path.start[0]) == (replay.measured, replay.graph.span.start)
    assert replay._repeated_unchanged == pytest.approx(replay.measured, rel=0.16)


@pytest.mark.parametrize("name", TRAINING)
def test_no_what_if_leaves_the_bounds(traces_root: Path, name: str) -> None:
    """Nothing makes a step longer, and no host code saves more than the device does not work."""
    replay = replayed(traces_root / name)
    for asked in scenarios(replay):
        saved = replay.saving(asked)
        assert 0 <= saved <= replay.measured
    everything = scenarios(replay)[0]
    for asked in scenarios(replay):
        everything = everything.also(asked)
    assert replay.saving(everything) >= max(replay.saving(asked) for asked in scenarios(replay))


def test_a_loader_without_workers_costs_what_the_device_waits_for_it(traces_root: Path) -> None:
    """ResNet-50, 0 workers: the device waits 284 to 287 ms for input in the window of 6 steps.

    The replayed steps are the last 5 of them. With 4 workers it waits 2.8 ms.
    """
    slow = wb.open(traces_root / TRAINING[0]).ranks[0].replayed.bounds
    fast = wb.open(traces_root / TRAINING[2]).ranks[0].replayed.bounds
    assert slow is not None
    assert fast is not None
    assert slow["input"] * 5 / 1e6 == pytest.approx(285, rel=0.05)
    assert fast["input"] * 5 / 1e6 < 5


def test_a_busy_device_gains_nothing_from_the_host(traces_root: Path) -> None:
    """HTA's ns_resolution is busy 98.8 % of a step of 95.6 ms: launches save nothing."""
    run = wb.open(traces_root / TRAINING[4])
    bounds = run.ranks[0].replayed.bounds
    assert bounds is not None
    assert bounds["host"] < 0.01e6
    path = run.critical_path
    assert path is not None
    assert path[path["kind"] == "compute"]["share"].sum() > 0.95


def test_who_waits_for_a_late_rank_and_who_is_late(traces_root: Path) -> None:
    """In long_a2a of torchrec rank 2 sleeps about 1 s a step, the others wait for it in NCCL."""
    ranks = {
        rank: replayed(traces_root / name) for rank, name in ((0, TRAINING[10]), (2, TRAINING[11]))
    }
    shares = {
        rank: {kind: ns / each.measured for kind, ns in critical_path(each).by_kind.items()}
        for rank, each in ranks.items()
    }
    assert shares[0]["communication"] > 0.85
    assert shares[2]["host_other"] > 0.85


def test_all_ranks_together_tell_what_a_late_rank_costs(traces_root: Path, tmp_path: Path) -> None:
    """The others wait 1031 to 1034 ms a step for rank 2, which itself gains by its sleep alone.

    Without the wait a step saves less than that: what the host did meanwhile, 64 ms of allocation
    among it, is no longer hidden.
    """
    for path in (traces_root / TORCHREC).parent.glob(f"{Path(TORCHREC).name}*"):
        shutil.copy(path, tmp_path)
    found = wb.open(tmp_path).what_if
    assert found is not None
    saved = found.pivot_table("saving_ns_at_most", "rank", "scenario") / 1e6
    for rank, waited in ((0, 1031), (1, 1034), (3, 1033)):
        assert waited - 64 < saved.loc[rank, "late_ranks"] < waited
    assert saved.loc[2, "late_ranks"] == 0
    assert saved.loc[2, "host_other"] > 990
