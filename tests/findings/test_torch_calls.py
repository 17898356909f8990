"""Settings reach no loop of the user's own: there a finding names torch's calls."""

from dataclasses import replace
from typing import Any

import pytest

from workbench.findings.finding import Finding
from workbench.findings.torch_calls import (
    device_type,
    in_profiler_words,
    in_torch_words,
    torch_calls,
)
from workbench.pages.findings import findings_text
from workbench.run.facts import is_capture
from workbench.store.record import RunRecord


@pytest.mark.parametrize(
    ("setting", "call"),
    [
        (None, None),
        ({"workers": 2}, "DataLoader(num_workers=2)"),
        ({"compile": True}, "torch.compile(model)"),
        (
            {"pin_memory": True, "non_blocking": True},
            "DataLoader(pin_memory=True) and tensor.to(device, non_blocking=True)",
        ),
        ({"precision": "bf16"}, "torch.autocast('cpu', dtype=torch.bfloat16)"),
        (
            {"precision": "tf32", "set_to_none": True},
            'torch.set_float32_matmul_precision("high") and optimizer.zero_grad(set_to_none=True)',
        ),
        ({"autocast_cache": False}, "torch.autocast('cpu', cache_enabled=False)"),
        ({"workers": 2, "unheard_of": 1}, None),
    ],
)
def test_a_setting_in_the_words_of_torch(setting: dict[str, Any] | None, call: str | None) -> None:
    assert torch_calls(setting) == call


def test_the_text_names_the_call_and_no_setting() -> None:
    finding = Finding(
        code="WB101",
        title="Steps wait.",
        verdict="yes",
        severity="warning",
        evidence={},
        advice="Load in worker processes.",
        setting={"workers": 2},
    )
    assert "setting: wb.Settings(workers=2)" in findings_text([finding])
    text = findings_text([replace(finding, call=torch_calls(finding.setting))])
    assert "call: DataLoader(num_workers=2)" in text
    assert "wb.Settings" not in text
    assert finding.to_json()["setting"] == {"workers": 2}


@pytest.mark.parametrize(
    ("settings", "effective", "captured"),
    [
        ({}, {"workers": 0, "device": "cpu"}, True),
        ({}, {"workers": 0, "device": "cpu", "step": "derived"}, False),
        ({"workers": 2}, {"workers": 2}, False),
    ],
)
def test_only_a_workload_tells_what_its_step_calls(
    settings: dict[str, Any], effective: dict[str, Any], captured: bool
) -> None:
    record = RunRecord(
        name="run",
        created="2026-01-01T00:00:00+00:00",
        workbench="0",
        settings=settings,
        effective=effective,
        record={},
        environment={},
        seeds={},
        timings=None,
        overhead_ratio=None,
        samples_per_step=None,
    )
    assert is_capture(record) is captured
    assert not is_capture(None)


@pytest.mark.parametrize(
    ("advice", "said"),
    [
        ("Try workers=2.", "Try DataLoader(num_workers=2)."),
        ("Use at most workers=16: more", "Use at most DataLoader(num_workers=16): more"),
        ("The loader's 2 workers cannot keep up.", "The loader's 2 workers cannot keep up."),
        ("DataLoader(persistent_workers=True)", "DataLoader(persistent_workers=True)"),
        ("DataLoader(num_workers=2)", "DataLoader(num_workers=2)"),
    ],
)
def test_advice_in_the_words_of_torch(advice: str, said: str) -> None:
    assert in_torch_words(advice) == said


@pytest.mark.parametrize(
    ("setting", "device"),
    [
        ({"precision": "bf16"}, "cpu"),
        ({"precision": "fp32"}, "cuda"),
        ({"autocast_cache": True}, "cpu"),
    ],
)
def test_a_call_of_autocast_runs_as_it_stands(setting: dict[str, Any], device: str) -> None:
    """Whoever pastes it has no variable of ours."""
    import torch

    call = torch_calls(setting, device=device)
    assert call is not None
    assert isinstance(eval(call, {"torch": torch}), torch.autocast)


@pytest.mark.parametrize(
    ("traced", "named"),
    [("hip", "cuda"), ("cuda:1", "cuda"), ("xpu", "xpu"), ("cpu", "cpu"), ("", "cpu")],
)
def test_a_type_of_device_in_the_words_of_torch(traced: str, named: str) -> None:
    """Torch calls AMD's devices cuda as well."""
    assert device_type(traced) == named


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("Record(stacks=True) names", "torch.profiler.profile(with_stack=True) names"),
        (
            "Record(shapes=True), or torch.profiler with record_shapes=True.",
            "torch.profiler.profile(record_shapes=True).",
        ),
        ("use Record(memory=True)", "use torch.profiler.profile(profile_memory=True)"),
        ("Load in worker processes.", "Load in worker processes."),
    ],
)
def test_advice_on_a_trace_from_elsewhere_names_the_options_of_its_recorder(
    ours: str, theirs: str
) -> None:
    """The three options as torch.profiler.profile documents them."""
    assert in_profiler_words(ours) == theirs


def test_no_text_about_a_trace_from_elsewhere_names_our_record() -> None:
    """Every text of the package that names an option of Record is one that is put in its words."""
    import re
    from pathlib import Path

    import workbench

    root = Path(workbench.__file__).parent
    texts = [p.read_text(encoding="utf-8") for p in (root / "findings").glob("*.py")]
    texts += [p.read_text(encoding="utf-8") for p in (root / "run").glob("*.py")]
    named = {found for text in texts for found in re.findall(r"Record\(\w+=True\)", text)}
    assert named
    assert not {each for each in named if "Record(" in in_profiler_words(each)}
