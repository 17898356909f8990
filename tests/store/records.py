"""A run.json record to build tests on."""

from typing import Any

from workbench.store.record import RunRecord, Timings


def record(**changes: Any) -> RunRecord:
    """A small valid record; any field may be given."""
    fields: dict[str, Any] = {
        "name": "mine",
        "created": "2026-12-02T10:00:00.000+01:00",
        "workbench": "0.1.0",
        "settings": {"workers": 2},
        "effective": {},
        "record": {"shapes": True},
        "environment": {},
        "seeds": {},
        "timings": Timings(
            step_ns=[90, 10, 12, 14],
            input_ns=[],
            warmup=1,
            blocks=[2, 2],
            profiled_step_ns=[20],
        ),
        "overhead_ratio": None,
        "samples_per_step": None,
    }
    return RunRecord(**(fields | changes))
