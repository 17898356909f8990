"""What a collective is called, how it may be split, and the factor of its bus bandwidth.

The tables are data: names of records (``record_param_comms``), of ranges (``nccl:all_reduce``,
``gloo:all_reduce``) and of kernels (``ncclDevKernel_AllReduce_Sum_f32_RING_LL``) all differ.
"""

import re
from functools import lru_cache
from typing import Literal

KINDS: tuple[tuple[str, str], ...] = (
    ("all_to_allv", r"all_?to_?allv"),
    ("all_to_all", r"all_?to_?all|all2all|pairwise_exchange"),
    ("reduce_scatter", r"reduce_?scatter"),
    ("all_reduce", r"all_?reduce|cross_device_reduce|(one|two)_?shot_?reduce"),
    ("all_gather", r"all_?gather"),
    ("broadcast", r"broadcast|_bcast"),
    ("barrier", r"barrier"),
    ("dispatch", r"::\w*dispatch"),
    ("combine", r"::\w*combine"),
    ("send_recv", r"send_?recv|coalesced|batch_isend"),
    ("send", r"(^|[:_])i?send\b"),
    ("recv", r"(^|[:_])i?recv"),
    ("reduce", r"(^|[:_])reduce"),
    ("gather", r"(^|[:_])gather"),
    ("scatter", r"(^|[:_])scatter"),
)
"""Name of the collective, and the pattern on a lower-case name; the first match wins."""

BACKEND_RANGE = re.compile(r"(nccl|rccl|xccl|ccl|hccl|cncl|ucc|gloo|mpi):", re.IGNORECASE)
"""Ranges that a backend records around a collective: on a device they hold the launch."""

HOST_RANGE = re.compile(r"(gloo|mpi|ucc):", re.IGNORECASE)
"""Ranges that are the collective itself, on the host."""

RECORD = "record_param_comms"

Split = Literal["minimum", "arrival", "none"]

_ARRIVAL = frozenset({"all_to_allv", "dispatch", "combine"})
_UNSPLIT = frozenset({"send", "recv", "send_recv", "other"})

_KINDS = tuple((kind, re.compile(pattern)) for kind, pattern in KINDS)

DTYPE_BYTES: dict[str, int] = {
    **dict.fromkeys(("byte", "char", "bool", "int8", "uint8", "int8_t", "uint8_t"), 1),
    **dict.fromkeys(("unsigned char", "signed char", "float8_e4m3fn", "float8_e5m2"), 1),
    **dict.fromkeys(("c10::float8_e4m3fn", "c10::float8_e5m2"), 1),
    **dict.fromkeys(("half", "bfloat16", "short", "float16", "int16", "short int"), 2),
    **dict.fromkeys(("c10::half", "c10::bfloat16"), 2),
    **dict.fromkeys(("float", "int", "float32", "int32"), 4),
    **dict.fromkeys(("double", "long", "long int", "float64", "int64", "complexfloat"), 8),
    **dict.fromkeys(("c10::complex<float>",), 8),
    **dict.fromkeys(("complexdouble", "c10::complex<double>"), 16),
}
"""Bytes of an element by the names that torch writes, in lower case."""


@lru_cache(maxsize=4096)
def collective_kind(name: str) -> str:
    """The collective that a record, range or kernel of this name runs; ``other`` if none is known.

    A kernel of NCCL's point-to-point primitives is ``send_recv`` by its name, whatever it is for.
    """
    lower = name.lower()
    return next((kind for kind, pattern in _KINDS if pattern.search(lower)), "other")


def split_of(kind: str, *, told: bool) -> Split:
    """How time in a collective divides into transfer and waiting for late ranks.

    ``minimum``: the shortest of all ranks is the transfer. ``arrival``: ranks move different
    amounts, so a rank waits until the last one has arrived. ``none``: it has no common part.
    ``told`` says that the record itself names the collective; only then is an all-to-all known to
    be even, since torch calls the uneven one ``all_to_allv`` there.
    """
    if kind in _UNSPLIT:
        return "none"
    if kind in _ARRIVAL or (kind == "all_to_all" and not told):
        return "arrival"
    return "minimum"


def full_buffer(kind: str, elements: int | None, ranks: int | None) -> int | None:
    """Elements of the buffer that metrics count, from those of the input alone.

    The input of an all-gather is one rank's part: the full buffer is as many times larger as the
    group has ranks, and unknown without their number.
    """
    if elements is None or kind != "all_gather":
        return elements
    return None if ranks is None else elements * ranks
