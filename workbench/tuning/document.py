"""The JSON of a verification: schema ``workbench.verification/1``."""

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from workbench.tuning.trial import FairBlock, Trial

if TYPE_CHECKING:
    from workbench.tuning.verification import Verification


def verification_document(found: "Verification") -> dict[str, Any]:
    """Everything but the name of the schema; ``null`` means not measured."""
    change = found.change
    document: dict[str, Any] = _plain(
        {
            "settings": found.settings.to_json(),
            "base": found.base.to_json(),
            "finding": None if found.finding is None else found.finding.to_json(),
            "sentence": found.sentence,
            "advice": found.advice,
            "ended": found.fair.ended,
            "elapsed_s": found.fair.elapsed_s,
            "per": found.per,
            "change": asdict(change),
            "whole_change": asdict(found.whole_change),
            "bound": None if found.bound is None else asdict(found.bound),
            "elsewhere": [asdict(each) for each in found.elsewhere],
            "parity": None if found.parity is None else found.parity.to_json(),
            "break_even_steps": found.break_even_steps,
            "differences": [asdict(each) for each in found.differences],
            "notes": [*found.notes, *found.fair.notes],
            "trials": [trial_document(trial) for trial in found.fair.trials],
        }
    )
    return document


def trial_document(trial: Trial) -> dict[str, Any]:
    """One trial with its blocks."""
    return {
        "settings": trial.settings.to_json(),
        "outcome": trial.outcome,
        "reason": trial.reason,
        "step_us": _us(trial.step_ns),
        "sample_us": _us(trial.sample_ns),
        "samples_per_step": trial.samples_per_step,
        "compile_s": trial.compile_s,
        "peak_rss_bytes": trial.peak_rss_bytes,
        "workers_bytes": trial.workers_bytes,
        "device_peak_bytes": trial.device_peak_bytes,
        "effective": dict(trial.effective),
        "compilation": None if trial.compilation is None else dict(trial.compilation),
        "warmup_us": [_us(ns) for ns in trial.warmup_ns],
        "notes": list(trial.notes),
        "warnings": list(trial.warnings),
        "blocks": [_block(block) for block in trial.blocks],
    }


def _block(block: FairBlock) -> dict[str, Any]:
    return {
        "position": block.position,
        "step_us": [_us(ns) for ns in block.step_ns],
        "input_us": [_us(ns) for ns in block.input_ns],
        "left_out_us": [_us(ns) for ns in block.left_out_ns],
        "delay_us": None if block.delay_ns is None else [_us(ns) for ns in block.delay_ns],
        "delay_share": block.delay_share,
        "samples": list(block.samples),
        "losses": list(block.losses),
        "conditions": dict(block.conditions),
    }


def _us(ns: float | None) -> float | None:
    return None if ns is None else ns / 1000


def _plain(value: Any) -> Any:
    """The same with everything that JSON has no word for as text or ``None``."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)
