"""Writes small exports of Nsight Systems by hand: only the tables and columns that a test names."""

import sqlite3
from pathlib import Path
from typing import Any

PROCESS = 50 << 24
"""A process as the export writes it: pid 50 in the upper bits."""
THREAD = PROCESS | 51
"""Thread 51 of that process."""


def export(path: Path, **tables: list[dict[str, Any]]) -> Path:
    """A database with one table for each keyword; the first row of a table names its columns."""
    database = sqlite3.connect(path)
    for name, rows in tables.items():
        columns = list(rows[0])
        listed = ", ".join(f'"{column}"' for column in columns)
        database.execute(f'CREATE TABLE "{name}" ({listed})')
        marks = ", ".join("?" for _ in columns)
        values = [[row[column] for column in columns] for row in rows]
        database.executemany(f'INSERT INTO "{name}" VALUES ({marks})', values)
    database.commit()
    database.close()
    return path


def strings(*values: str) -> list[dict[str, Any]]:
    """The table of strings, numbered from 1."""
    return [{"id": number, "value": value} for number, value in enumerate(values, 1)]


def call(name: int, start: int, end: int, correlation: int, thread: int = THREAD) -> dict[str, Any]:
    """A call of the CUDA runtime or driver."""
    times = {"start": start, "end": end, "globalTid": thread}
    return {**times, "correlationId": correlation, "nameId": name}


def kernel(name: int, start: int, end: int, correlation: int, **others: Any) -> dict[str, Any]:
    """A kernel on stream 7 of device 0."""
    row = {"start": start, "end": end, "globalPid": PROCESS, "deviceId": 0, "streamId": 7}
    return {**row, "correlationId": correlation, "demangledName": name, **others}


def nvtx(
    text: str | None, start: int, end: int | None, kind: int = 59, **others: Any
) -> dict[str, Any]:
    """An NVTX range (59), start-end range (60) or mark (34)."""
    row = {"start": start, "end": end, "eventType": kind, "text": text, "globalTid": THREAD}
    return {**row, "textId": None, **others}
