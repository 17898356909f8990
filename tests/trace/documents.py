"""Random traces in which every column occurs, as documents of plain JSON."""

from typing import Any

from hypothesis import strategies as st

# Everything that a name may hold, lone surrogates apart: those are no text.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NAMES = st.sampled_from(
    ["ProfilerStep#3", "aten::mm", 'a "quoted" \\ name', "\x00\n\t", "é日\U0001f525"]
)
NAMES |= TEXTS
_IDS = st.integers(0, 2**40)
_PLACES = {"pid": st.integers(0, 3) | st.sampled_from(["Spans", "007"]), "tid": st.integers(0, 3)}
_TIME = st.integers(1, 10**7).map(lambda ns: ns / 1000)
_LENGTH = st.integers(0, 10**6).map(lambda ns: ns / 1000)
_DIMS = st.lists(st.lists(st.integers(1, 9), max_size=2), min_size=1, max_size=2)
_EXTENT = st.lists(st.integers(1, 1024), min_size=3, max_size=3)
_FLOAT = st.floats(0, 100, width=32)

_HOST = st.fixed_dictionaries(
    {},
    optional={
        "External id": _IDS,
        "Sequence number": _IDS,
        "Fwd thread id": st.integers(0, 9),
        "Input Dims": _DIMS,
        "Input type": st.lists(st.sampled_from(["float", ""]), min_size=1, max_size=2),
        "Input Strides": _DIMS,
        "Call stack": TEXTS,
        "Collective name": TEXTS,
        "Process Group Name": TEXTS,
        "Group size": st.integers(1, 8),
        "In msg nelems": _IDS,
        "dtype": st.sampled_from(["Float", "BFloat16"]),
        "In split size": st.just("[1, 2]"),
        "Global rank start": st.integers(0, 8),
        "Comms Id": st.sampled_from(["17", "4711"]),
        "Is asynchronized op": st.booleans(),
    },
)
_CALL = st.fixed_dictionaries(
    {}, optional={"External id": _IDS, "correlation": _IDS, "bytes": _IDS}
)
_DEVICE = st.fixed_dictionaries(
    {"device": st.integers(0, 2), "stream": st.integers(0, 9)},
    optional={
        "correlation": _IDS,
        "External id": _IDS,
        "bytes": _IDS,
        "grid": _EXTENT,
        "block": _EXTENT,
        "registers per thread": st.integers(0, 255),
        "shared memory": st.integers(0, 2**17),
        "est. achieved occupancy %": _FLOAT,
        "blocks per SM": _FLOAT,
        "warps per SM": _FLOAT,
        "queued": _IDS,
        "graph id": _IDS,
        "graph node id": _IDS,
        "memory bandwidth (GB/s)": st.floats(0, 5000),
        "wait_on_stream": st.integers(0, 9),
        "wait_on_cuda_event_id": _IDS,
        "wait_on_cuda_event_record_corr_id": _IDS,
    },
)
_PYTHON = st.fixed_dictionaries(
    {"Python id": _IDS, "Python parent id": st.none() | _IDS},
    optional={"Python module id": st.integers(0, 9)},
)
_MEMORY = st.fixed_dictionaries(
    {"Bytes": st.integers(-(2**40), 2**40)},
    optional={
        "Total Allocated": _IDS,
        "Total Reserved": _IDS,
        "Addr": _IDS,
        "Device Type": st.integers(0, 1),
        "Device Id": st.integers(-1, 2),
    },
)


def _event(phase: str, **columns: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"ph": st.just(phase), "ts": _TIME, **_PLACES, **columns})


def _duration(categories: list[str], args: Any) -> st.SearchStrategy[dict[str, Any]]:
    cat = st.sampled_from(categories)
    return _event("X", name=NAMES, cat=cat, dur=_LENGTH, args=args)


DURATIONS = (
    _duration(["cpu_op", "user_annotation"], _HOST)
    | _duration(["cuda_runtime", "cuda_driver"], _CALL)
    | _duration(["kernel", "gpu_memcpy", "gpu_memset", "gpu_user_annotation"], _DEVICE)
    | _duration(["python_function"], _PYTHON)
    | _duration(["", "my own", "Operator"], _HOST)
)
OTHERS = (
    st.sampled_from("stf").flatmap(
        lambda phase: _event(phase, id=st.integers(0, 5), cat=st.sampled_from(["ac2g", "fwdbwd"]))
    )
    | _event("i", name=st.just("[memory]"), args=_MEMORY)
    | _event("i", name=NAMES, cat=st.sampled_from(["", "marks"]))
    | _event("C", name=TEXTS, args=st.dictionaries(TEXTS, st.floats(), min_size=1, max_size=2))
    | st.fixed_dictionaries(
        {
            "ph": st.just("M"),
            "name": st.sampled_from(["process_name", "thread_name"]),
            **_PLACES,
            "args": st.fixed_dictionaries({"name": TEXTS}),
        }
    )
)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "baseTimeNanoseconds": st.integers(0, 2 * 10**18),
        "distributedInfo": st.fixed_dictionaries({"rank": st.integers(0, 7)}),
        "deviceProperties": st.just([{"id": 0, "name": "NVIDIA A100"}]),
        "trace_id": TEXTS,
    },
)


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """A trace with at least one duration; some with absolute stamps."""
    events = draw(st.lists(DURATIONS, min_size=1, max_size=8)) + draw(st.lists(OTHERS, max_size=6))
    return {**draw(HEADERS), "traceEvents": draw(st.permutations(events))}
