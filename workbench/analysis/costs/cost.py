"""What one call of an operator must do at least: floating-point operations and bytes moved.

The count follows from the shapes alone. FLOPs are those of products, convolutions, attention and
recurrent layers, a multiplication and an addition being two; other arithmetic is limited by the
memory, so that its cost is its bytes. Bytes are the least that any kernel can do: every input read
once, every result written once.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MATRIX_KINDS = ("gemm", "convolution", "attention", "recurrent")
"""Kinds of work that are counted in FLOPs."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a call must do, whatever kernel does it."""

    flops: int
    bytes_read: int
    bytes_written: int
    kind: str
    """gemm, convolution, attention, recurrent, embedding, normalisation, softmax, reduction,
    pooling, optimizer, elementwise, fill, copy, fused, or ``view`` for what moves nothing."""
    dtype: str | None = None
    """fp64, fp32, bf16, fp16 or fp8 of the inputs; ``None`` where it does not matter."""
    recomputed: int = 0
    """The part of ``flops`` that repeats what was computed before (attention's backward)."""

    @property
    def bytes(self) -> int:
        """Read and written together."""
        return self.bytes_read + self.bytes_written

    @property
    def intensity(self) -> float | None:
        """FLOPs a byte; ``None`` for what moves nothing."""
        return self.flops / self.bytes if self.bytes else None


class UncountedError(Exception):
    """Why the cost of a call is not known; its text is the reason."""


NO_SHAPES = "no shapes were recorded"
UNKNOWN_SHAPE = "an input has no recorded shape (nested, empty or not a tensor)"
DYNAMIC = "a shape is not fixed"
NO_FLAGS = "the values it was called with (strides, causal) were not recorded"
COMPLEX = "complex numbers"
INTEGER = "integer arithmetic"
QUANTIZED = "a quantized operator"
SPARSE = "a sparse tensor"
NESTED = "a nested tensor"
VARYING = "sequences of different lengths: their sum is in the data, not in the shapes"
NO_FORMULA = "no formula for this operator"
NO_TYPE = "the type of an input was not recorded"

Dims = tuple[int, ...]

_SIZES: dict[str, tuple[int, str | None]] = {
    "double": (8, "fp64"),
    "float": (4, "fp32"),
    "c10::BFloat16": (2, "bf16"),
    "c10::Half": (2, "fp16"),
    "c10::Float8_e4m3fn": (1, "fp8"),
    "c10::Float8_e5m2": (1, "fp8"),
    "c10::Float8_e4m3fnuz": (1, "fp8"),
    "c10::Float8_e5m2fnuz": (1, "fp8"),
    "float64": (8, "fp64"),
    "float32": (4, "fp32"),
    "bfloat16": (2, "bf16"),
    "float16": (2, "fp16"),
    "float8_e4m3fn": (1, "fp8"),
    "float8_e5m2": (1, "fp8"),
    "long int": (8, None),
    "long": (8, None),
    "int": (4, None),
    "short int": (2, None),
    "short": (2, None),
    "short unsigned int": (2, None),
    "signed char": (1, None),
    "unsigned char": (1, None),
    "bool": (1, None),
    "int64": (8, None),
    "int32": (4, None),
    "int16": (2, None),
    "uint16": (2, None),
    "int8": (1, None),
    "uint8": (1, None),
}
"""Bytes of an element and its short name, as Kineto and as torch spell the types."""
_MARKS = {"sparse": SPARSE, "nested": NESTED}
_COMPLEX = ("c10::complex", "complex")
_QUANTIZED = ("c10::qint", "c10::quint", "qint", "quint")


@dataclass(frozen=True, kw_only=True)
class Call:
    """The inputs of one call, by argument."""

    operator: str
    shapes: Sequence[Any]
    types: Sequence[Any]
    values: Sequence[Any]
    outputs: Sequence[Any]
    strides: Sequence[Any] = ()

    def dims(self, at: int) -> Dims:
        """The sizes of a tensor argument."""
        if at >= len(self.shapes):
            raise UncountedError(NO_SHAPES if not self.shapes else UNKNOWN_SHAPE)
        return _sizes(self.shapes[at])

    def has(self, at: int) -> bool:
        """Whether the argument is a tensor whose type was recorded."""
        return at < len(self.shapes) and at < len(self.types) and tensor_type(self.types[at])

    def tensors(self, most: int | None = None) -> list[int]:
        """Places of the tensor arguments among the first ``most``."""
        count = len(self.shapes) if most is None else min(most, len(self.shapes))
        return [at for at in range(count) if self.has(at)]

    def size_of(self, at: int) -> int:
        """Bytes of an element of the argument."""
        return element(self._type(at))[0]

    def dtype(self, at: int) -> str:
        """The short name of a floating-point argument; others cannot be counted."""
        known = element(self._type(at))[1]
        if known is None:
            raise UncountedError(INTEGER)
        return known

    def bytes_of(self, at: int) -> int:
        """Bytes of a tensor argument; what a stride of 0 repeats is there once."""
        dims = self.dims(at)
        if at < len(self.strides):
            steps = self.strides[at]
            if isinstance(steps, list) and len(steps) == len(dims):
                dims = tuple(n for n, step in zip(dims, steps, strict=True) if step != 0)
        return math.prod(dims) * self.size_of(at)

    def value(self, at: int) -> Any:
        """A plain argument: a number, a truth, a list."""
        if at >= len(self.values):
            raise UncountedError(NO_FLAGS)
        return _plain(self.values[at])

    def flag(self, at: int) -> bool:
        """A plain argument that is true or false."""
        found = self.value(at)
        if not isinstance(found, bool):
            raise UncountedError(NO_FLAGS)
        return found

    def numbers(self, at: int, length: int) -> Dims:
        """A plain argument of one whole number for each of ``length`` dimensions."""
        found = self.value(at)
        found = [found] if isinstance(found, int) and not isinstance(found, bool) else found
        if not isinstance(found, list) or not all(type(n) is int for n in found):
            raise UncountedError(NO_FLAGS)
        if len(found) == 1:
            found = found * length
        if len(found) != length:
            raise UncountedError(NO_FLAGS)
        return tuple(found)

    def _type(self, at: int) -> str:
        found = self.types[at] if at < len(self.types) else ""
        if isinstance(found, list):
            found = found[0] if found else ""
        return str(found)


def element(name: str) -> tuple[int, str | None]:
    """Bytes of an element of the type, and its short name; ``None`` for what is no float."""
    if name in _SIZES:
        return _SIZES[name]
    if name.startswith(_COMPLEX):
        raise UncountedError(COMPLEX)
    if name.startswith(_QUANTIZED):
        raise UncountedError(QUANTIZED)
    raise UncountedError(_MARKS.get(name, NO_TYPE))


def tensor_type(name: Any) -> bool:
    """Whether the recorded type of an argument is that of a tensor (or a marked kind of one)."""
    if not isinstance(name, str):
        return False
    return name in _SIZES or name in _MARKS or name.startswith((*_COMPLEX, *_QUANTIZED))


def call_of(operator: str, shapes: Any, types: Any, extra: Mapping[str, Any] | None = None) -> Call:
    """A call from what was recorded of it: JSON text or lists."""
    more = extra or {}
    return Call(
        operator=operator,
        shapes=_listed(shapes),
        types=_listed(types),
        values=_listed(more.get("values")),
        outputs=_listed(more.get("outputs")),
        strides=_listed(more.get("strides")),
    )


def lists_of(call: Call, at: int) -> list[Dims]:
    """The shapes of an argument that is a list of tensors."""
    if at >= len(call.shapes):
        raise UncountedError(NO_SHAPES)
    found = call.shapes[at]
    if not isinstance(found, list) or not found or not all(isinstance(n, list) for n in found):
        raise UncountedError(UNKNOWN_SHAPE)
    return [_sizes(each) for each in found]


def _sizes(found: Any) -> Dims:
    if not isinstance(found, list | tuple):
        raise UncountedError(UNKNOWN_SHAPE)
    if not all(type(n) is int and n >= 0 for n in found):
        raise UncountedError(DYNAMIC)
    return tuple(found)


def _plain(found: Any) -> Any:
    if not isinstance(found, str):
        return list(found) if isinstance(found, tuple) else found
    text = {"True": "true", "False": "false"}.get(found, found)
    text = text.replace("True", "true").replace("False", "false") if text[:1] == "[" else text
    try:
        return json.loads(text)
    except ValueError:
        return found


def _listed(found: Any) -> list[Any]:
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except ValueError:
            return []
    return list(found) if isinstance(found, list | tuple) else []
