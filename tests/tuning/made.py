"""Trials, blocks and findings made by hand, times in milliseconds."""

from collections.abc import Sequence
from typing import Any

from workbench.findings import Finding
from workbench.settings import Settings
from workbench.tuning.trial import FairBlock, Trial


def block(step_ms: Sequence[float], position: int = 0, samples: int = 8, **more: Any) -> FairBlock:
    """A block of steps that all count."""
    return FairBlock(
        position=position,
        step_ns=tuple(round(ms * 1e6) for ms in step_ms),
        input_ns=(0,) * len(step_ms),
        samples=(samples,) * len(step_ms),
        left_out_ns=(),
        **more,
    )


def trial(
    blocks: Sequence[FairBlock],
    settings: Settings | None = None,
    *,
    warmup_ms: Sequence[float] = (),
    compiled: bool = False,
    **more: Any,
) -> Trial:
    """A trial that was measured."""
    return Trial(
        settings=settings or Settings(),
        outcome="measured",
        reason=None,
        blocks=tuple(blocks),
        warmup_ns=tuple(round(ms * 1e6) for ms in warmup_ms),
        effective={},
        compilation={"graphs": 1} if compiled else None,
        **more,
    )


def found(**changed: Any) -> Finding:
    """A finding that a switch answers."""
    given: dict[str, Any] = {
        "code": "WB101",
        "title": "Input-bound.",
        "verdict": "yes",
        "severity": "warning",
        "evidence": {},
        "advice": "Load in worker processes.",
        "setting": {"workers": 2},
    }
    return Finding(**{**given, **changed})
