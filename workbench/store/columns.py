"""A small table on disk: named columns with written types, and a record about the whole of it.

Arrow IPC, so that any tool reads it; a number that was not measured is null.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import RunError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_ABOUT = b"workbench"


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """A table that was read, and what was written beside it."""

    table: "pa.Table"
    about: dict[str, Any]

    def frame(self) -> "pd.DataFrame":
        """The table as pandas, with nullable types: missing is ``<NA>``, never 0."""
        import pandas as pd
        import pyarrow as pa

        types = {
            pa.int16(): pd.Int16Dtype(),
            pa.int32(): pd.Int32Dtype(),
            pa.int64(): pd.Int64Dtype(),
            pa.float64(): pd.Float64Dtype(),
            pa.bool_(): pd.BooleanDtype(),
            pa.string(): pd.StringDtype(),
        }
        frame: pd.DataFrame = self.table.to_pandas(types_mapper=types.get)
        return frame


def write_columns(
    path: Path,
    rows: Sequence[Mapping[str, Any]],
    types: Mapping[str, str],
    about: Mapping[str, Any],
) -> None:
    """Write rows as a table of these columns; a row that lacks one has null there."""
    import pyarrow as pa

    schema = pa.schema([(name, _type(text)) for name, text in types.items()])
    schema = schema.with_metadata({_ABOUT: json.dumps(about).encode()})
    arrays = [
        pa.array([row.get(name) for row in rows], schema.field(name).type) for name in schema.names
    ]
    table = pa.Table.from_arrays(arrays, schema=schema)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
        writer.write_table(table)


def read_columns(path: Path, types: Mapping[str, str]) -> Columns:
    """The table that :func:`write_columns` wrote; columns of later versions are left out.

    Raises:
        RunError: the file is damaged.
    """
    import pyarrow as pa

    try:
        with pa.OSFile(str(path), "rb") as file:
            table = pa.ipc.open_file(file).read_all()
        about = json.loads((table.schema.metadata or {}).get(_ABOUT, b"{}"))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise RunError(f"{path} is damaged ({error}): record again.") from error
    schema = pa.schema([(name, _type(text)) for name, text in types.items()])
    columns = [
        table[name].cast(kind) if name in table.column_names else pa.nulls(len(table), kind)
        for name, kind in zip(schema.names, schema.types, strict=True)
    ]
    return Columns(table=pa.Table.from_arrays(columns, schema=schema), about=about)


def _type(text: str) -> "pa.DataType":
    import pyarrow as pa

    if text == "items":
        return pa.list_(pa.struct([(name, pa.int64()) for name in ITEM]))
    return pa.type_for_alias(text)


ITEM = (
    "position",
    "samples",
    "start_ns",
    "dur_ns",
    "cpu_ns",
    "run_delay_ns",
    "read_ns",
    "read_cpu_ns",
    "read_bytes",
    "storage_bytes",
    "major_faults",
    "file_system",
    "calls",
    "read_run_delay_ns",
)
"""Numbers of one sample that was looked at closely."""
