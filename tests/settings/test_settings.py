"""Does the record of settings check itself, and does it survive JSON?"""

import ast
import inspect
import json
import re
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest

from tests.house.files import ROOT
from workbench.errors import SettingError
from workbench.settings import Record, Settings, check_records, settings
from workbench.settings.checks import _CHECKS, _COMPILE_MODES, _WORDS


def test_only_what_is_set_counts_as_a_change() -> None:
    assert Settings().changes() == {}
    assert Settings(workers=0, pin_memory=False).changes() == {"workers": 0, "pin_memory": False}
    assert str(Settings()) == "as it is"
    assert str(Settings(precision="bf16", workers=4)) == "precision=bf16, workers=4"


def test_it_comes_back_from_json_as_it_was() -> None:
    settings = Settings(precision="bf16", batch_size=8, workers=2, compile=False)
    assert Settings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


def test_every_field_survives_json_and_is_hashable() -> None:
    """One value for each field; lists of JSON come back as tuples."""
    one = Settings(**EVERYTHING)
    assert set(EVERYTHING) == {field.name for field in fields(Settings)}
    assert Settings.from_json(json.loads(json.dumps(one.to_json()))) == one
    assert hash(one) == hash(Settings(**EVERYTHING))


def test_what_older_runs_wrote_still_means_the_same() -> None:
    old = '{"precision": "bf16", "compile": true, "channels_last": false, "workers": 2}'
    assert Settings.from_json(json.loads(old)) == Settings(
        precision="bf16", compile=True, channels_last=False, workers=2
    )


def test_lists_are_taken_as_tuples_and_said_shortly() -> None:
    one = Settings(checkpointing=["Block", "head"], cpu_affinity=[0, 1], clip_norm=1)  # type: ignore[arg-type]
    assert one.checkpointing == ("Block", "head")
    assert str(one) == "checkpointing=Block+head, clip_norm=1.0, cpu_affinity=0+1"


@pytest.mark.parametrize("name", [field.name for field in fields(Settings)])
def test_every_field_is_checked_and_documented(name: str) -> None:
    assert name in _CHECKS
    text = _docstrings()[name]
    assert "Helps:" in text
    assert "Hurts:" in text
    reference = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| `{name}` \|", reference, re.MULTILINE)


def test_the_words_that_are_checked_are_those_of_the_types() -> None:
    hints = inspect.get_annotations(Settings, eval_str=True)
    for name, words in _WORDS.items():
        assert get_args(get_args(hints[name])[0]) == words
    assert get_args(settings.CompileMode) == _COMPILE_MODES


def _docstrings() -> dict[str, str]:
    """What stands under each field, which Python itself does not keep."""
    tree = ast.parse(Path(settings.__file__).read_text(encoding="utf-8"))
    (record,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "Settings")
    found = {}
    for field, text in zip(record.body, record.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            assert isinstance(field.target, ast.Name)
            assert isinstance(text.value, ast.Constant)
            found[field.target.id] = str(text.value.value)
    return found


EVERYTHING: dict[str, Any] = {
    "precision": "fp16",
    "matmul_precision": "high",
    "autocast_cache": True,
    "loss_scale": 1024.0,
    "compile": "max-autotune",
    "compile_dynamic": False,
    "compile_fullgraph": True,
    "cudnn_benchmark": True,
    "cuda_graphs": False,
    "channels_last": True,
    "attention": "flash",
    "checkpointing": ("Block", "layers.0"),
    "accumulation": 2,
    "clip_norm": 1.5,
    "optimizer": "foreach",
    "set_to_none": False,
    "batch_size": 8,
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
    "interop_threads": 1,
    "worker_threads": 1,
    "cpu_affinity": (0, 1),
    "device": "cuda:1",
    "parallel": {"mode": "ddp", "world_size": 2, "bucket_mb": 10.0},
}


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"precision": "int4"}, "use one of fp32, tf32, bf16, fp16, bf16_pure, fp8"),
        ({"batch_size": 0}, "batch_size=0 must be at least 1"),
        ({"workers": -1}, "workers=-1 must be at least 0"),
        ({"workers": 1.5}, "must be a whole number"),
        ({"workers": True}, "must be a whole number"),
        ({"accumulation": "4"}, "must be a whole number"),
        ({"compile": 1}, "must be True, False, 'default'"),
        ({"workers": 0, "prefetch_factor": 2}, "prefetch_factor needs worker processes"),
        ({"workers": 0, "persistent_workers": True}, "persistent_workers needs worker processes"),
        ({"workers": 0, "in_order": False}, "in_order needs worker processes"),
        ({"workers": 0, "worker_threads": 2}, "worker_threads needs worker processes"),
        ({"workers": 0, "multiprocessing_context": "fork"}, "needs worker processes"),
        ({"loss_scale": 1024.0}, "needs the gradient scaling of precision='fp16'"),
        ({"precision": "fp16", "loss_scale": 0}, "loss_scale=0 must be a number above 0"),
        ({"precision": "fp16", "loss_scale": float("inf")}, "must be a number above 0"),
        ({"clip_norm": float("nan")}, "clip_norm=nan must be a number above 0"),
        ({"clip_norm": True}, "clip_norm=True must be a number above 0"),
        ({"precision": "fp32", "matmul_precision": "high"}, "contradict each other"),
        ({"precision": "tf32", "matmul_precision": "highest"}, "contradict each other"),
        ({"precision": "fp32", "autocast_cache": True}, "autocast_cache=True needs autocast"),
        ({"compile_dynamic": False}, "compile_dynamic acts on a model that is compiled"),
        ({"compile": False, "compile_fullgraph": True}, "compile_fullgraph acts on a model"),
        ({"compile": "fast"}, "must be True, False, 'default', 'reduce-overhead'"),
        ({"compile": "reduce-overhead", "cuda_graphs": False}, "means CUDA graphs"),
        ({"non_blocking": True, "pin_memory": False}, "needs pinned memory"),
        ({"checkpointing": "Block"}, r"write \('Block',\)"),
        ({"checkpointing": []}, "checkpointing is empty"),
        ({"checkpointing": ["a", "a"]}, "names one twice"),
        ({"checkpointing": [1]}, "tuple of module types or names"),
        ({"cpu_affinity": [0, -1]}, r"tuple of CPU numbers, such as \(0, 1\)"),
        ({"cpu_affinity": [True]}, "tuple of CPU numbers"),
        ({"device": "gpu"}, "device='gpu' is unknown; use cpu, cuda"),
        ({"device": "cpu:x"}, "device='cpu:x' is unknown"),
        ({"multiprocessing_context": "thread"}, "use one of fork, forkserver, spawn"),
        ({"precision": ["bf16"]}, "is unknown; use one of"),
        ({"clip_norm": 10**400}, r"clip_norm=1000\d+\.\.\.\d+ must be a number above 0"),
        ({"precision": ["bf16"] * 99}, r"precision=\['bf16', .*\.\.\.\] is unknown"),
        ({"parallel": {"mode": "ddp", "bucket_mb": 10**400}}, r"\.\.\.\d+ must be a number of MiB"),
        ({"parallel": {"mode": "ddp", "world_size": 1}}, "world_size=1 must be at least 2"),
        ({"parallel": {"mode": "pp", "split": "layer"}}, r"write \('layer',\)"),
        ({"parallel": "x" * 999}, r"parallel='x+\.\.\.x+' is unknown"),
        ("bf16", "a dictionary of names and values, not a str"),
        (None, "a dictionary of names and values, not a NoneType"),
        ({"wrokers": 2}, "unknown setting 'wrokers'; known are accumulation, attention"),
    ],
)
def test_a_value_that_means_nothing_is_refused(values: Any, match: str) -> None:
    with pytest.raises(SettingError, match=match):
        Settings.from_json(values)


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_what_to_record_is_yes_or_no(value: Any) -> None:
    with pytest.raises(SettingError, match=r"stacks=.* must be True or False"):
        Record(stacks=value)


@pytest.mark.parametrize("wrong", [{}, {"workers": 2}, "bf16", 2])
def test_what_only_looks_like_a_record_is_refused(wrong: Any) -> None:
    with pytest.raises(SettingError, match=r"give a record such as wb\.Settings\("):
        check_records(wrong, Record())
    with pytest.raises(SettingError, match=r"give a record such as wb\.Record\("):
        check_records(None, wrong)
