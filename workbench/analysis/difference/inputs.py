"""What the matrix operators of a trace were given: data types and shapes."""

import json
from collections import Counter

import numpy as np

from workbench.analysis.causes import operator_rows
from workbench.trace.table import Trace

MATRIX_OPERATORS = frozenset(
    {
        *("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::_scaled_mm"),
        *("aten::convolution", "aten::scaled_dot_product_attention", "aten::embedding"),
        *("aten::lstm", "aten::gru", "aten::rnn_tanh"),
    }
)
"""Those that compute; ``aten::linear`` and the like are called with the types before autocast."""

_SHORT = {
    "float": "float32",
    "double": "float64",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "c10::Float8_e4m3fn": "float8_e4m3fn",
    "c10::Float8_e5m2": "float8_e5m2",
}
_FLOATS = {"float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2"}


def input_types(trace: Trace) -> tuple[str, ...] | None:
    """Data types of the matrix operators' floating inputs, most frequent first.

    ``None`` where types were not recorded, or no such operator was.
    """
    counted: Counter[str] = Counter()
    for code, count in _counts(trace, trace.events.types).items():
        types = {_SHORT.get(name, name) for name in _texts(trace.types[code[1]])}
        for name in types & _FLOATS:
            counted[name] += count
    return tuple(name for name, _ in counted.most_common()) or None


def input_shapes(trace: Trace) -> frozenset[str] | None:
    """Matrix operators with the shapes of their inputs; ``None`` where shapes were not recorded."""
    found = _counts(trace, trace.events.shapes)
    return frozenset(f"{name} {trace.shapes[code]}" for name, code in found) or None


def _counts(
    trace: Trace, column: np.ndarray[tuple[int], np.dtype[np.int32]]
) -> Counter[tuple[str, int]]:
    """How often each matrix operator has each code of the column."""
    events = trace.events
    wanted = trace.name_codes(MATRIX_OPERATORS.__contains__)
    rows = np.flatnonzero(operator_rows(trace) & np.isin(events.name, wanted))
    rows = rows[column[rows] >= 0]
    pairs, counts = np.unique(
        np.stack((events.name[rows], column[rows])), axis=1, return_counts=True
    )
    return Counter(
        {
            (trace.names[name], int(code)): int(count)
            for name, code, count in zip(*pairs, counts, strict=True)
        }
    )


def _texts(encoded: str) -> list[str]:
    """The names in one entry of ``Trace.types``, lists among the inputs included."""
    try:
        entries = json.loads(encoded)
    except ValueError:
        return []
    return (
        [entry for entry in entries if isinstance(entry, str)] if isinstance(entries, list) else []
    )
