"""Does the pasted code run without us, and does each line of it act?"""

import ast
import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from workbench.settings import Settings
from workbench.tuning.paste import pasted

pytestmark = pytest.mark.slow


VALUES: dict[str, Any] = {
    "precision": "bf16",
    "matmul_precision": "high",
    "autocast_cache": False,
    "loss_scale": 1024.0,
    "compile": "max-autotune",
    "compile_dynamic": True,
    "compile_fullgraph": True,
    "cudnn_benchmark": True,
    "cuda_graphs": True,
    "channels_last": True,
    "attention": "math",
    "checkpointing": ("Block",),
    "accumulation": 2,
    "clip_norm": 1.0,
    "optimizer": "fused",
    "set_to_none": False,
    "batch_size": 64,
    "workers": 2,
    "prefetch_factor": 4,
    "pin_memory": True,
    "persistent_workers": True,
    "non_blocking": True,
    "drop_last": True,
    "batched_fetch": True,
    "in_order": False,
    "multiprocessing_context": "spawn",
    "threads": 2,
    "interop_threads": 2,
    "worker_threads": 2,
    "cpu_affinity": (0, 1),
    "device": "cuda:0",
    "parallel": "ddp",
}
NEEDS: dict[str, dict[str, Any]] = {
    "autocast_cache": {"precision": "bf16"},
    "loss_scale": {"precision": "fp16"},
    "compile_dynamic": {"compile": True},
    "compile_fullgraph": {"compile": True},
    "non_blocking": {"device": "cuda:0", "pin_memory": True},
    **{name: {"workers": 2} for name in ("prefetch_factor", "persistent_workers", "in_order")},
    **{name: {"workers": 2} for name in ("multiprocessing_context", "worker_threads")},
}
SAID = {
    "precision": "torch.autocast",
    "matmul_precision": 'set_float32_matmul_precision("high")',
    "autocast_cache": "cache_enabled=False",
    "loss_scale": "init_scale=1024.0",
    "compile": 'mode="max-autotune"',
    "compile_dynamic": "dynamic=True",
    "compile_fullgraph": "fullgraph=True",
    "cudnn_benchmark": "cudnn.benchmark = True",
    "cuda_graphs": "make_graphed_callables",
    "channels_last": "memory_format=torch.channels_last",
    "attention": "SDPBackend.MATH",
    "checkpointing": "use_reentrant=False",
    "accumulation": "chunk(2)",
    "clip_norm": "clip_grad_norm_(model.parameters(), 1.0)",
    "optimizer": 'group["fused"] = True',
    "set_to_none": "set_to_none=False",
    "batch_size": "batch_size=64",
    "workers": "num_workers=2",
    "prefetch_factor": "prefetch_factor=4",
    "pin_memory": "pin_memory=True",
    "persistent_workers": "persistent_workers=True",
    "non_blocking": "non_blocking=True",
    "drop_last": "drop_last=True",
    "batched_fetch": "__getitems__",
    "in_order": "in_order=False",
    "multiprocessing_context": "multiprocessing_context='spawn'",
    "threads": "torch.set_num_threads(2)",
    "interop_threads": "set_num_interop_threads(2)",
    "worker_threads": "    torch.set_num_threads(2)",
    "cpu_affinity": "sched_setaffinity(0, {0, 1})",
    "device": 'model.to("cuda:0")',
    "parallel": "torchrun --nproc-per-node",
}


def look(**more: Any) -> dict[str, Any]:
    effective = {
        "device": "cpu",
        "step": "training",
        "optimizers": ["AdamW"],
        "batch_size": 4,
        "workers": 0,
        "sampler": "RandomSampler",
        "batch_sampler": "BatchSampler",
        **more.pop("effective", {}),
    }
    return {"batch_kind": "sequence", "source": "dataset", "effective": effective, **more}


@pytest.mark.parametrize("name", [each.name for each in fields(Settings)])
@pytest.mark.parametrize("source", ["dataset", "loader"])
def test_every_setting_has_its_lines(name: str, source: str):
    settings = Settings(**{**NEEDS.get(name, {}), name: VALUES[name]})
    code = pasted(settings, look(source=source), "mine")
    ast.parse(code)
    assert SAID[name] in code
    assert "workbench" not in code


def test_nothing_found_changes_nothing():
    assert pasted(Settings(), look(), "mine").startswith("# Nothing")


def test_a_title_cannot_leave_its_comment():
    code = pasted(Settings(threads=2), look(), "mine\nimport evil")
    assert type(ast.parse(code).body[0]) is ast.Import
    assert "import evil" not in code.splitlines()


def test_loops_of_other_kinds_say_where_lines_go():
    own = pasted(
        Settings(precision="bf16", clip_norm=1.0), look(effective={"step": "own step"}), "mine"
    )
    assert "step(model, batch)  # your own" in own
    assert "# In your step, before optimizer.step():" in own
    infer = pasted(Settings(precision="bf16"), look(effective={"step": "inference"}), "mine")
    assert "torch.no_grad()" in infer
    assert "optimizer" not in infer.partition("The loop.")[2]
    named = pasted(Settings(precision="bf16"), look(batch_kind="mapping", has_loss=False), "mine")
    assert "loss = model(**batch).loss" in named
    several = pasted(
        Settings(optimizer="foreach"), look(effective={"optimizers": ["SGD", "Adam"]}), "mine"
    )
    assert "for optimizer in optimizers:" in several


PLAIN = """
import json, sys
sys.modules["workbench"] = None  # an import of it fails
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import TensorDataset

seen = []

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
    def forward(self, x):
        seen.append({
            "autocast": torch.is_autocast_enabled("cpu"),
            "dtype": str(self.conv(x).dtype),
            "last": x.is_contiguous(memory_format=torch.channels_last),
            "rows": len(x),
        })
        return self.conv(x)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
        self.head = nn.Linear(3 * 64, 2)
    def forward(self, x):
        return self.head(self.block(x).flatten(1))

def names():
    torch.manual_seed(0)
    model = Net()
    return {
        "model": model, "loss_fn": functional.cross_entropy,
        "optimizer": torch.optim.AdamW(model.parameters()),
        "dataset": TensorDataset(torch.randn(16, 3, 8, 8), torch.randint(2, (16,))),
    }

if __name__ == "__main__":
    answers = []
    for code in json.load(sys.stdin):
        seen.clear()
        mine = names()
        before = mine["model"].head.weight.detach().clone()
        exec(code, mine)
        loader = mine["loader"]
        answers.append({
            "seen": list(seen), "workers": loader.num_workers,
            "prefetch": loader.prefetch_factor, "batch": loader.batch_size,
            "threads": torch.get_num_threads(),
            "fused": mine["optimizer"].param_groups[0]["fused"],
            "weights": mine["model"].head.weight.dtype.is_floating_point,
            "moved": not torch.equal(before, mine["model"].head.weight),
            "last": mine["model"].block.conv.weight.stride()[1] == 1,
        })
    print(json.dumps(answers))
"""


def test_pasted_code_runs_without_us_and_acts(tmp_path: Path):
    asked = [
        Settings(threads=1, batch_size=4),
        Settings(
            precision="bf16", channels_last=True, workers=1, prefetch_factor=3, optimizer="fused"
        ),
        Settings(accumulation=2, clip_norm=1.0, checkpointing=("Block",), batched_fetch=True),
    ]
    script = tmp_path / "train.py"
    script.write_text(PLAIN)
    done = subprocess.run(
        [sys.executable, str(script)],
        input=json.dumps([pasted(one, look(), "mine") for one in asked]),
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    plain, low, parts = json.loads(done.stdout)
    assert all(answer["moved"] for answer in (plain, low, parts))  # it trains
    # 16 samples in batches of 4 are 4 calls, as plain as the loop was.
    assert [one["rows"] for one in plain["seen"]] == [4, 4, 4, 4]
    assert plain["seen"][0] == {
        "autocast": False,
        "dtype": "torch.float32",
        "last": False,
        "rows": 4,
    }
    assert (plain["threads"], plain["batch"], plain["workers"]) == (1, 4, 0)
    assert low["seen"][0] == {"autocast": True, "dtype": "torch.bfloat16", "last": True, "rows": 4}
    assert (low["workers"], low["prefetch"]) == (1, 3)
    assert low["fused"] is True
    assert low["last"] is True
    # Two parts of each of 4 batches, each computed a second time in backward: 16 calls of 2 rows.
    assert [one["rows"] for one in parts["seen"]] == [2] * 16


SLOW = """
import time
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import Dataset

class Slow(Dataset):
    def __len__(self):
        return 256
    def __getitem__(self, index):
        time.sleep(0.005)
        return torch.full((4,), float(index % 7)), torch.tensor(index % 2)

torch.manual_seed(0)
model = nn.Linear(4, 2)
loss_fn = functional.cross_entropy
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
dataset = Slow()
"""
TIMED = """
import sys, time
sys.modules["workbench"] = None
from planted import *
from torch.utils.data import DataLoader

if __name__ == "__main__":
    began = time.monotonic()
    for x, y in DataLoader(dataset, batch_size=8, shuffle=True):
        optimizer.zero_grad(); loss_fn(model(x), y).backward(); optimizer.step()
    plain = time.monotonic() - began
    began = time.monotonic()
    exec(open("best.py").read(), globals())
    print((time.monotonic() - began) / plain)
"""


@pytest.mark.soak
def test_the_pasted_code_has_the_gain_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "planted.py").write_text(SLOW)
    (tmp_path / "timed.py").write_text(TIMED)
    monkeypatch.syspath_prepend(str(tmp_path))
    import planted  # type: ignore[import-not-found]

    work = wb.Workload(
        planted.model,
        planted.dataset,
        loss=planted.loss_fn,
        optimizer=planted.optimizer,
        batch_size=8,
    )
    monkeypatch.setattr("workbench.tuning.search.from_findings", lambda *_: [])
    found = wb.tune(work, budget=40, only=("workers",), folder=tmp_path / "tuning", progress=False)
    assert found.best.workers == 2, found  # the most that is offered on two processors
    (tmp_path / "best.py").write_text(found.code())
    done = subprocess.run(
        [sys.executable, "timed.py"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    # 32 batches of 8 × 5 ms are 1.3 s in one process and half of it in two, workers' start apart.
    assert float(done.stdout) < 0.85
