"""Traces as lists that a test can compare."""

from workbench.trace.table import Kind, Trace

Row = tuple[str, str, int, int]


def rows(trace: Trace, *kinds: Kind) -> list[Row]:
    """(name, kind, start, length) of every event, or of those of some kinds, in time order."""
    events = trace.events
    chosen = events.rows(*(kinds or tuple(Kind)))
    return [
        (
            trace.names[events.name[row]],
            Kind(events.kind[row]).name.lower(),
            int(events.ts[row]),
            int(events.dur[row]),
        )
        for row in chosen
    ]


def column(trace: Trace, name: str, *kinds: Kind) -> list[int]:
    """One column of the events of some kinds, in time order."""
    events = trace.events
    return [int(value) for value in getattr(events, name)[events.rows(*(kinds or tuple(Kind)))]]
