"""Which layers are divided, where a model is cut, and what starts the ranks."""

import sys
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from workbench.errors import SettingError
from workbench.parallel.job import rank_environment
from workbench.parallel.launchers import torchrun
from workbench.parallel.sharded import units_of
from workbench.parallel.stages import balanced, check_cuts, pieces_of
from workbench.parallel.tensor_plan import asked_plan, divided_attention, find_plan


class Attention(nn.Module):
    """Four projections under their usual names."""

    def __init__(self, heads: int = 4) -> None:
        super().__init__()
        self.num_heads = heads
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(16, 16) for _ in range(3))
        self.out_proj = nn.Linear(16, 16)


class Gated(nn.Module):
    """A feed-forward block with a gate."""

    def __init__(self) -> None:
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(16, 24), nn.Linear(16, 24)
        self.down_proj = nn.Linear(24, 16)


def test_pairs_with_elementwise_work_between_them_are_divided() -> None:
    model = nn.Sequential(nn.Linear(8, 6), nn.GELU(), nn.Linear(6, 8), nn.Linear(8, 3))
    assert find_plan(model, 2) == {"0": "colwise", "2": "rowwise"}


def test_a_norm_between_two_layers_keeps_them_whole() -> None:
    """It takes its mean over all features, of which a rank would hold a part."""
    model = nn.Sequential(nn.Linear(8, 6), nn.LayerNorm(6), nn.Linear(6, 8))
    with pytest.raises(SettingError, match="no pair of linear layers"):
        find_plan(model, 2)


def test_blocks_are_known_by_their_names() -> None:
    model = nn.ModuleDict({"a": Attention(), "m": Gated()})
    assert find_plan(model, 2) == {
        **{f"a.{name}": "colwise" for name in ("q_proj", "k_proj", "v_proj")},
        "a.out_proj": "rowwise",
        **{"m.gate_proj": "colwise", "m.up_proj": "colwise", "m.down_proj": "rowwise"},
    }
    (found,) = divided_attention(model, find_plan(model, 2))
    assert found is model["a"]


def test_heads_that_do_not_divide_stay_whole() -> None:
    assert find_plan(nn.ModuleDict({"a": Attention(3), "m": Gated()}), 2).keys() == {
        *("m.gate_proj", "m.up_proj", "m.down_proj")
    }


def test_the_feed_forward_of_torchs_own_layer_is_divided() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16)
    assert find_plan(layer, 2) == {"linear1": "colwise", "linear2": "rowwise"}


@pytest.mark.parametrize(
    ("plan", "match"),
    [
        ((("mlp.up", "colwise"),), "no module of that name; linear layers are 0, 2"),
        ((("1", "colwise"),), "names '1', a GELU: only nn.Linear"),
        ((("0", "colwise"),), "0 cannot be divided: its 7 outputs do not divide by 2"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(plan: Any, match: str) -> None:
    model = nn.Sequential(nn.Linear(8, 7), nn.GELU(), nn.Linear(7, 8))
    with pytest.raises(SettingError, match=match):
        asked_plan(model, plan, 2)


def test_a_pattern_names_the_layers_of_all_blocks() -> None:
    model = nn.Sequential(*[Gated() for _ in range(2)])
    found = asked_plan(model, (("*.down_proj", "rowwise"),), 2)
    assert found == {"0.down_proj": "rowwise", "1.down_proj": "rowwise"}


@pytest.mark.parametrize(
    ("times", "parts", "cuts"),
    [
        ([3, 1, 1, 3], 2, [2]),  # 4 and 4
        ([1, 1, 1, 9], 2, [3]),  # 3 and 9: no cut makes the longest shorter than 9
        ([2, 2, 2, 2, 2, 2], 3, [2, 4]),
        ([5, 1, 1, 1], 4, [1, 2, 3]),
    ],
)
def test_stages_balance(times: list[float], parts: int, cuts: list[int]) -> None:
    assert balanced(times, parts) == cuts


def test_cuts_are_checked_by_name() -> None:
    layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))
    model = nn.ModuleDict({"blocks": layers[:2], "head": layers[2]})
    assert list(pieces_of(model)) == ["blocks.0", "blocks.1", "head"]
    check_cuts(model, ["blocks.1"], 2)
    with pytest.raises(SettingError, match=r"cut before blocks\.0, blocks\.1, head"):
        check_cuts(model, ["tail"], 2)
    with pytest.raises(SettingError, match="names 1 modules, and 3 stages"):
        check_cuts(model, ["head"], 3)


def test_weights_are_gathered_block_by_block() -> None:
    model = nn.Sequential(Gated(), Gated(), nn.Linear(16, 2))
    assert list(units_of(model)) == ["0", "1"]
    assert list(units_of(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))) == ["0"]


def test_torchrun_meets_over_a_file_and_opens_no_port() -> None:
    words = torchrun(3, Path("/job")).arguments
    assert words[:4] == (sys.executable, "-P", "-m", "torch.distributed.run")
    assert words[-3:] == ("-m", "workbench.parallel.worker", "/job")
    text = " ".join(words)
    assert "--nproc-per-node 3" in text
    assert "store_type=file" in text
    assert not any("master" in word for word in words)


def test_a_rank_inherits_no_job_and_listens_on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASTER_PORT", "29500")  # taken by somebody else, perhaps
    monkeypatch.setenv("WORLD_SIZE", "1")
    found = rank_environment(3)
    assert not {"MASTER_PORT", "WORLD_SIZE"} & set(found)
    assert found["OMP_NUM_THREADS"] == "3"
    assert found["GLOO_SOCKET_IFNAME"] in ("lo", "lo0")
