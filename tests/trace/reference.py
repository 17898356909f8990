"""A second reader, as plain as can be: json.loads, exact decimals, loops. Only for comparing."""

import json
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from workbench.trace.table import Trace

Row = tuple[Any, ...]


def exact_ns(us: Any) -> int:
    """Microseconds of any spelling in whole nanoseconds."""
    return int((Decimal(us) * 1000).to_integral_value(ROUND_HALF_EVEN))


def expected_rows(text: bytes) -> list[Row]:
    """Every duration of a trace as (start, length, name, category, pid, tid), in table order."""
    document = json.loads(text, parse_float=Decimal)
    events = document["traceEvents"] if isinstance(document, dict) else document
    rows = [
        (
            exact_ns(event["ts"]),
            exact_ns(event.get("dur", 0)),
            event.get("name", ""),
            event.get("cat", ""),
            str(event.get("pid", "")),
            str(event.get("tid", "")),
            *(event.get("args", {}).get(key, -1) for key in ("correlation", "External id")),
        )
        for event in events
        if event.get("ph") == "X"
    ]
    rows.sort(key=lambda row: (row[0], -row[1]))
    first = rows[0][0] if rows else 0
    return [(row[0] - first, *row[1:]) for row in rows]


def rows(trace: Trace) -> list[Row]:
    """The same of a trace that was read."""
    events = trace.events
    lanes = [trace.lanes[code] for code in events.lane]
    return list(
        zip(
            events.ts.tolist(),
            events.dur.tolist(),
            [trace.names[code] for code in events.name],
            [trace.categories[code] for code in events.category],
            [lane.pid for lane in lanes],
            [lane.tid for lane in lanes],
            events.correlation.tolist(),
            events.external_id.tolist(),
            strict=True,
        )
    )


def names(trace: Trace) -> list[str]:
    """Names of the durations, in time order."""
    return [trace.names[code] for code in trace.events.name]


def codes(trace: Trace) -> dict[str, int]:
    """What reading had to note: code and count."""
    return {violation.code: violation.count for violation in trace.violations}
