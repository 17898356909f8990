"""Feeds mutated traces and arbitrary bytes to ``trace.read`` until it breaks or the time is over.

    python -m tests.soak.fuzz --minutes 60
    python -m tests.soak.fuzz --reproduce test-results/fuzz/crash-...

atheris guides the changes by which lines of the reader they reach; where it has no wheel (outside
Linux), the same changes are made without that guidance. Whatever a file holds, ``read`` gives a
sound Trace or raises a TraceError, within the time and the memory below. Ends with an error when it
does not, and keeps the file that shows it. Real traces named by ``WORKBENCH_TRACES`` join the
seeds, as far as they are small.
"""

import argparse
import hashlib
import os
import resource
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from tests.soak.mutation import LARGEST, mutate

TEXT_LIMIT = 1 << 24
SECONDS_PER_FILE = 15
"""Of processor time: beside other work the clock on the wall tells nothing."""
HANGS_S = 10 * SECONDS_PER_FILE
"""On the wall."""
MEMORY_PER_FILE = 256 << 20
"""Most bytes that reading may add; the text is at most 16 MiB, however well it is compressed."""
_KEPT = Path("test-results/fuzz")
_LINUX = sys.platform == "linux"


class TooSlowError(Exception):
    """Reading a small file took more processor time than it may."""


class TooMuchMemoryError(Exception):
    """Reading a small file took more memory than it may."""


def check(data: bytes) -> None:
    """Read a file as the fuzzer does; anything that it raises is a defect."""
    from tests.trace.test_fuzz import survives

    before, begun = _resident_now(), time.process_time()
    survives(data)
    taken, spent = _largest_since() - before, time.process_time() - begun
    if spent > SECONDS_PER_FILE:
        raise TooSlowError(f"{spent:.1f} s for a file of {len(data):,} bytes")
    if taken > MEMORY_PER_FILE:
        raise TooMuchMemoryError(f"{taken >> 20} MiB for a file of {len(data):,} bytes")


def _resident_now() -> int:
    """Bytes in memory; Linux counts the largest anew from here on."""
    if not _LINUX:
        return _largest_since()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _largest_since()


def _largest_since() -> int:
    if not _LINUX:
        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def seeds() -> list[bytes]:
    """Small files of every kind that can be read, and of many that cannot."""
    from tests.trace.formats.test_damage import SEEDS
    from tests.trace.test_fuzz import seeds as layouts

    found = [b"", *layouts(), *(make() for make in SEEDS.values())]
    real = os.environ.get("WORKBENCH_TRACES")
    if real:
        files = (path for path in Path(real).rglob("*") if path.is_file())
        found += [path.read_bytes() for path in files if path.stat().st_size <= LARGEST]
    return found


def guided(folder: Path, seconds: int) -> None:
    """Never returns: libFuzzer ends the process, with an error when a file broke the reader."""
    import atheris

    with atheris.instrument_imports(include=["workbench.trace"]):
        from workbench import trace  # noqa: F401
    for seed in seeds():
        (folder / hashlib.sha1(seed).hexdigest()).write_bytes(seed)
    _KEPT.mkdir(parents=True, exist_ok=True)
    options = {
        "max_total_time": seconds,
        "timeout": HANGS_S,
        "rss_limit_mb": 2048,
        "max_len": LARGEST,
        "artifact_prefix": f"{_KEPT}/",
        "print_final_stats": 1,
        "verbosity": 1,
    }

    def change(data: bytes, largest: int, seed: int) -> bytes:
        if seed % 8 == 0:
            return bytes(atheris.Mutate(data, largest))
        return mutate(data, Random(seed))[:largest]

    arguments = [sys.argv[0], *(f"-{key}={value}" for key, value in options.items()), str(folder)]
    atheris.Setup(arguments, check, custom_mutator=change)
    atheris.Fuzz()


def unguided(seconds: int, random: Random) -> int:
    """The same changes without coverage; returns how many files were read."""
    pool, count, end = seeds(), 0, time.monotonic() + seconds
    signal.signal(signal.SIGALRM, _too_slow)
    while time.monotonic() < end:
        data = mutate(random.choice(pool), random)
        signal.alarm(HANGS_S)
        try:
            check(data)
        except BaseException:
            _KEPT.mkdir(parents=True, exist_ok=True)
            path = _KEPT / f"crash-{hashlib.sha1(data).hexdigest()}"
            path.write_bytes(data)
            _tell(f"kept as {path}")
            raise
        finally:
            signal.alarm(0)
        count += 1
    return count


def _too_slow(*_: Any) -> None:
    raise TimeoutError(f"not read within {HANGS_S} s")


def _tell(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--unguided", action="store_true", help="without coverage, also on Linux")
    parser.add_argument("--reproduce", type=Path, metavar="FILE")
    parser.add_argument("--worker", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    given = parser.parse_args()
    seconds = int(given.minutes * 60)
    if given.reproduce:
        check(given.reproduce.read_bytes())
        _tell("read, or refused with a TraceError")
    elif given.worker:
        guided(given.worker, seconds)
    elif given.unguided or find_spec("atheris") is None:
        count = unguided(seconds, Random(time.time_ns()))
        _tell(f"{count:,} files without coverage guidance: none broke the reader")
    else:
        with TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "tests.soak.fuzz", "--worker", folder]
            done = subprocess.run([*command, "--minutes", str(given.minutes)], check=False)
        if done.returncode:
            sys.exit(f"A file broke the reader; it is in {_KEPT}. See --reproduce.")
        _tell("guided by coverage: no file broke the reader")


if __name__ == "__main__":
    main()
