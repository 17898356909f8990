"""A trace as one Arrow record batch, and back, without copying its columns.

The batch has one row. Each table is a list of structs in it, each table of strings a list, and what
is small is one JSON document in ``rest``. So one plain Arrow IPC file holds tables of different
lengths, and any Arrow reader can take a table out of it::

    batch = pyarrow.ipc.open_file("rank0.events.arrow").get_batch(0)
    events = pyarrow.Table.from_struct_array(batch["events"].values)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import msgspec
import numpy as np
from isal import isal_zlib
from numpy.typing import NDArray

from workbench.trace.table import (
    Collective,
    Copies,
    Counters,
    Device,
    Events,
    Flows,
    Instants,
    Lane,
    LaunchConfigurations,
    MemoryEvents,
    Trace,
    Violation,
    Waits,
)

if TYPE_CHECKING:
    import pyarrow as pa

TABLES: dict[str, type[Any]] = {
    "events": Events,
    "flows": Flows,
    "memory": MemoryEvents,
    "instants": Instants,
    "counters": Counters,
    "launch_configurations": LaunchConfigurations,
    "copies": Copies,
    "waits": Waits,
}
TEXTS = (
    *("names", "categories", "shapes", "types", "strides", "values", "stacks"),
    "counter_names",
)
_METADATA = b"workbench.trace"


class WrongCacheError(Exception):
    """The file is no cache of this trace, or it is damaged."""


@dataclass(frozen=True, kw_only=True)
class Rest:
    """Everything of a trace that is no column and no table of strings."""

    source: str
    lanes: tuple[Lane, ...]
    devices: tuple[Device, ...]
    base_ns: int | None
    rank: int | None
    world_size: int | None
    header: dict[str, Any]
    violations: tuple[Violation, ...]
    collectives: tuple[Collective, ...]


def to_batch(trace: Trace, key: str) -> pa.RecordBatch:
    """The trace as a record batch that carries ``key`` and a checksum."""
    import pyarrow as pa

    columns = {name: _list_of(_struct(trace, name)) for name in TABLES}
    for name in TEXTS:
        texts = trace.counters.names if name == "counter_names" else getattr(trace, name)
        columns[name] = _list_of(_strings(texts))
    rest = Rest(header=dict(trace.header), **{n: getattr(trace, n) for n in _REST if n != "header"})
    columns["rest"] = _list_of(_numbers(np.frombuffer(msgspec.json.encode(rest), np.uint8)))
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    stamp = msgspec.json.encode({"key": key, "checksum": checksum(batch)})
    return batch.replace_schema_metadata({_METADATA: stamp})


def stamped_key(schema: pa.Schema) -> str | None:
    """The key of the trace that a cache was made from, or ``None`` when it is no cache of ours."""
    stamp = (schema.metadata or {}).get(_METADATA)
    return None if stamp is None else str(msgspec.json.decode(stamp)["key"])


def from_batch(batch: pa.RecordBatch) -> Trace:
    """The trace that a batch holds; its columns are read-only views of the batch.

    Raises:
        WrongCacheError: The content is not what was written.
    """
    batch.validate()
    if batch.schema.names != [*TABLES, *TEXTS, "rest"] or batch.num_rows != 1:
        raise WrongCacheError("other columns")
    stamp = msgspec.json.decode(batch.schema.metadata[_METADATA])
    if stamp["checksum"] != checksum(batch):
        raise WrongCacheError("checksum")
    tables = {name: _columns(batch[name].values, name) for name in TABLES}
    texts: dict[str, Any] = {name: _texts(batch[name].values) for name in TEXTS}
    tables["counters"]["names"] = texts.pop("counter_names")
    rest = msgspec.json.decode(_view(batch["rest"].values).tobytes(), type=Rest)
    parts: dict[str, Any] = {name: TABLES[name](**columns) for name, columns in tables.items()}
    return Trace(**parts, **texts, **{name: getattr(rest, name) for name in _REST})


def checksum(batch: pa.RecordBatch) -> int:
    """CRC-32 of all columns."""
    found = 0
    for column in batch.columns:
        for buffer in _buffers(column.values):
            found = isal_zlib.crc32(buffer, found)
    return found


_REST = tuple(column.name for column in fields(Rest))


@cache
def dtypes(table: str) -> dict[str, np.dtype[Any]]:
    """The written schema of a table: the type of each of its columns."""
    hints = get_type_hints(TABLES[table])
    columns = [column.name for column in fields(TABLES[table]) if column.name != "names"]
    return {name: np.dtype(get_args(get_args(hints[name])[1])[0]) for name in columns}


def _struct(trace: Trace, of: str) -> pa.Array:
    import pyarrow as pa

    table = getattr(trace, of)
    columns: dict[str, pa.Array] = {}
    for name, dtype in dtypes(of).items():
        values = getattr(table, name)
        if values.dtype != dtype:
            told, values = values, values.astype(dtype)
            if not np.array_equal(told, values):
                raise TypeError(f"{name} is {told.dtype}, not {dtype}")
        if not columns or not _is_absent(values):
            columns[name] = _numbers(values)
    return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))


def _is_absent(values: NDArray[Any]) -> bool:
    """A column of nothing but *not recorded* that takes no memory; it is not written."""
    return values.strides == (0,) and len(values) > 0 and values[0] == -1


def _columns(struct: pa.StructArray, table: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, dtype in dtypes(table).items():
        index = struct.type.get_field_index(name)
        if index < 0:
            values = np.broadcast_to(np.array(-1).astype(dtype), len(struct))
        else:
            values = _view(struct.field(index))
        if values.dtype != dtype:
            raise WrongCacheError(f"{name} is {values.dtype}")
        found[name] = values
    return found


def _numbers(values: NDArray[Any]) -> pa.Array:
    import pyarrow as pa

    flat = np.ascontiguousarray(values).reshape(-1)
    kind = pa.from_numpy_dtype(flat.dtype)
    column = pa.Array.from_buffers(kind, len(flat), [None, pa.py_buffer(flat)])
    if values.ndim == 1:
        return column
    return pa.FixedSizeListArray.from_arrays(column, values.shape[1])


def _view(column: pa.Array) -> NDArray[Any]:
    """The numbers of a column, where they are; Arrow's own way would import pandas first."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(column.type):
        size = column.type.list_size
        flat = column.values.slice(column.offset * size, len(column) * size)
        return _view(flat).reshape(-1, size)
    if column.null_count:
        raise WrongCacheError("missing values")
    dtype = np.dtype(column.type.to_pandas_dtype())
    data = column.buffers()[1]
    if data is None:
        return np.empty(0, dtype)
    return np.frombuffer(data, dtype, len(column), column.offset * dtype.itemsize)


def _strings(texts: tuple[str, ...]) -> pa.Array:
    import pyarrow as pa

    data = [text.encode() for text in texts]
    offsets = np.zeros(len(data) + 1, np.int64)
    np.cumsum([len(text) for text in data], out=offsets[1:])
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(data))]
    return pa.Array.from_buffers(pa.large_string(), len(data), buffers)


def _texts(column: pa.Array) -> tuple[str, ...]:
    column.validate(full=True)
    return tuple(column.to_pylist())


def _list_of(values: pa.Array) -> pa.Array:
    import pyarrow as pa

    offsets = pa.py_buffer(np.array([0, len(values)], np.int64))
    return pa.Array.from_buffers(pa.large_list(values.type), 1, [None, offsets], children=[values])


def _buffers(column: pa.Array) -> Iterator[Any]:
    """The bytes of a column in a fixed order, without padding."""
    import pyarrow as pa

    if pa.types.is_struct(column.type):
        for index in range(column.type.num_fields):
            yield from _buffers(column.field(index))
    elif pa.types.is_large_string(column.type):
        _, offsets, data = column.buffers()
        ends = np.frombuffer(offsets, np.int64, len(column) + 1)
        yield ends
        yield np.frombuffer(data, np.uint8, int(ends[-1])) if data is not None else b""
    else:
        yield _view(column)
