"""Where in a Run a finding is best seen: the step that shows most of it."""

from typing import Any

_PARTS = {
    "WB1": ("input",),
    "WB107": ("exposed_memory", "input"),
    "WB201": ("launch", "host_operators", "host_python", "host_other"),
    "WB202": ("kernel_gap",),
    "WB203": ("synchronization",),
    "WB204": ("synchronization",),
    "WB205": ("optimizer", "host_operators"),
    "WB206": ("compilation",),
    "WB207": ("compilation",),
    "WB209": ("host_python", "host_other"),
    "WB210": ("garbage_collection",),
    "WB211": ("kernel_loading",),
    "WB4": ("exposed_communication_wait", "exposed_communication_transfer", "communication"),
    "WB5": ("allocation",),
}
"""By the code of a finding, or how it begins: the parts of a step that hold what it is about."""


def place_of(run: Any, finding: Any) -> tuple[float, float] | None:
    """Start and end, in µs from the first event; ``None`` without steps.

    The step in which the finding's part is longest, of several ranks the finding's own; the
    longest step, where none of its parts was measured.
    """
    table = run.step_parts
    if table is None or table.empty:
        return None
    if "rank" in table and finding.rank is not None:
        table = table[table["rank"] == finding.rank]
    if finding.device is not None and (table["device"] == finding.device).any():
        table = table[table["device"] == finding.device]
    steady = table[table["steady"].astype(bool)]
    table = table if steady.empty else steady
    if table.empty:
        return None
    parts = [name for name in parts_of(finding.code) if name in table]
    amount = table[parts].fillna(0).sum(axis=1) if parts else table["time_ns"]
    if not amount.max():
        amount = table["time_ns"]
    row = table.loc[amount.astype(float).idxmax()]
    start = float(row["start_ns"])
    return start / 1000, (start + float(row["time_ns"])) / 1000


def parts_of(code: str) -> tuple[str, ...]:
    """The parts of a step that a finding is about."""
    return _PARTS.get(code) or _PARTS.get(code[:3], ())
