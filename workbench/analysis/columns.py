"""Records whose fields are columns of equal length: some of their rows, and several as one."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Columns = TypeVar("Columns", bound="DataclassInstance")


def taken(record: Columns, rows: NDArray[Any]) -> Columns:
    """The rows of these numbers in this order, or those that a mask marks; all as they are."""
    if rows.dtype == bool and rows.all():
        return record
    return type(record)(**{c.name: getattr(record, c.name)[rows] for c in fields(record)})


def stacked(*records: Columns) -> Columns:
    """The rows of all records, one record behind the other."""
    kind = type(records[0])
    return kind(
        **{c.name: np.concatenate([getattr(one, c.name) for one in records]) for c in fields(kind)}
    )
