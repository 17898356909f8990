"""Progress bars for files that take long; on stderr, and only where somebody looks."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

LONG_BYTES = 30_000_000
"""Less text than this is read in a blink."""
LONG_RECORDS = 200_000
_GZIP_MAGIC = b"\x1f\x8b"


@contextmanager
def reading_bar(path: Path) -> Iterator[Callable[[int], None] | None]:
    """A bar for reading one trace; it appears with the first bytes, never when a cache is used."""
    size = text_bytes(path)
    if size < LONG_BYTES or not _watched():
        yield None
        return
    with _bar(f"reading {path.name}", size, "B") as advance:
        yield advance


@contextmanager
def writing_bar(path: Path, records: int) -> Iterator[Callable[[int], None] | None]:
    """A bar for writing one trace."""
    if records < LONG_RECORDS or not _watched():
        yield None
        return
    with _bar(f"writing {path.name}", records, " records") as advance:
        yield advance


def text_bytes(path: Path) -> int:
    """About how much text a file holds: of gzip, what its last bytes tell, below 4 GB."""
    try:
        with path.open("rb") as file:
            compressed = file.read(2) == _GZIP_MAGIC
            size = file.seek(0, 2)
            if not compressed or size < 4:
                return size
            file.seek(-4, 2)
            return max(size, int.from_bytes(file.read(4), "little"))
    except OSError:
        return 0


def _watched() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def _bar(title: str, total: int, unit: str) -> Iterator[Callable[[int], None]]:
    from tqdm import tqdm

    class Bar(tqdm):  # type: ignore[misc]
        """A bar without tqdm's monitor, a thread that would outlive it."""

        monitor_interval = 0

    shown: list[Any] = []

    def advance(done: int) -> None:
        if not shown:
            shown.append(
                Bar(
                    total=total,
                    desc=title,
                    unit=unit,
                    unit_scale=True,
                    leave=False,
                    file=sys.stderr,
                )
            )
        shown[0].update(min(done, total) - shown[0].n)

    try:
        yield advance
    finally:
        for bar in shown:
            bar.close()
