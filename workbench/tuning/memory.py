"""Whether the machine has enough memory left for another step."""

from pathlib import Path

LEAST_LEFT = 0.04
"""Share of the memory below which a step is not followed by another: beyond it the system ends
processes, ours among them (own choice)."""


class MemoryGuard:
    """Ends a measurement before the machine has no memory left."""

    def __init__(self) -> None:
        self._limit = _limit()

    def check(self) -> None:
        """Compare what is left with what must be.

        Raises:
            MemoryError: Too little is left.
        """
        left = available_bytes()
        if left < LEAST_LEFT * self._limit:
            from workbench.units import bytes_text

            raise MemoryError(
                f"only {bytes_text(left)} of {bytes_text(self._limit)} of memory were left, so it "
                "was ended before the system would have done so"
            )


def available_bytes() -> int:
    """What this process may still take, its container's limit included."""
    import psutil

    free = int(psutil.virtual_memory().available)
    limit, used = _cgroup("memory.max"), _cgroup("memory.current")
    if limit is None or used is None:
        return free
    return min(free, max(0, limit - used + (_reclaimable() or 0)))


def _limit() -> int:
    import psutil

    whole = int(psutil.virtual_memory().total)
    limit = _cgroup("memory.max")
    return whole if limit is None else min(whole, limit)


def _reclaimable() -> int | None:
    """File pages that the container's limit counts and the system gives back when asked."""
    text = _read(Path("/sys/fs/cgroup/memory.stat"))
    for line in (text or "").splitlines():
        name, _, value = line.partition(" ")
        if name == "inactive_file" and value.isdecimal():
            return int(value)
    return None


def _cgroup(name: str) -> int | None:
    text = (_read(Path("/sys/fs/cgroup") / name) or "").strip()
    return int(text) if text.isdecimal() else None


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None
