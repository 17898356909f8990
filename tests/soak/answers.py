"""Everything that is asked of a trace, of a file that may hold anything.

    python -m tests.soak.answers --minutes 10

Whatever a file holds: ``workbench analyze``, ``compare`` and ``convert`` give an answer that is
sound, or one TraceError.
"""

import argparse
import gzip
import json
import os
import sys
import time
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tests.soak.fuzz import seeds
from tests.soak.mutation import mutate
from workbench.errors import WorkbenchError

_KEPT = Path("test-results/answers")


def ask(path: Path, other: Path) -> bool:
    """Analyze a trace, compare it with another, and convert it; False when it is refused.

    Raises:
        Exception: An answer is missing or unsound; anything that is raised is a defect.
    """
    from workbench.run.compare import compare
    from workbench.run.source import open_run

    try:
        run = open_run(path)
        told = json.loads(json.dumps(run.summary.to_json(), allow_nan=False))
    except WorkbenchError:
        return False
    for rank in told["ranks"]:
        for device in rank["devices"]:
            if device["recording"] is not None:
                _sound(device["recording"])
    assert repr(run.findings) is not None
    assert repr(run)
    found = compare(open_run(other), run)
    json.dumps(found.to_json(), allow_nan=False, default=str)
    assert repr(found)
    _convert(path, path.with_name("converted.json"))
    return True


def _sound(recording: dict[str, dict[str, float]]) -> None:
    """Busy and idle are the span, and the causes are the idle."""
    span, busy, idle = (recording["time"][key] for key in ("span_us", "busy_us", "idle_us"))
    assert 0 <= busy <= span
    assert abs(busy + idle - span) < 0.002
    causes = recording["idle"]["by_cause"].values()
    if None not in causes:
        assert abs(sum(causes) - idle) < 0.002 * len(causes)


def _convert(path: Path, out: Path) -> None:
    """What is written is legal JSON and reads back with as many events and the same times."""
    from workbench import trace
    from workbench.run.source import open_run
    from workbench.trace.writing import write_merged, write_trace

    traces = [rank.trace for rank in open_run(path).ranks]
    try:
        if len(traces) == 1:
            write_trace(traces[0], out, overwrite=True)
        else:
            write_merged(traces, out, overwrite=True)
    except WorkbenchError:
        return
    json.loads(out.read_bytes(), parse_constant=_refuse)
    again = trace.read(out)
    assert len(again.events) == sum(len(each.events) for each in traces)
    if len(traces) == 1:
        assert again.events.dur.sum() == traces[0].events.dur.sum()
        assert (again.events.ts == traces[0].events.ts).all()


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def search(seconds: float, random: Random) -> tuple[int, int]:
    """Ask of mutated traces until the time is over; tells how many, and how many were read."""
    pool = [seed for seed in seeds() if seed]
    count = read = 0
    end = time.monotonic() + seconds
    with TemporaryDirectory() as folder:
        other = Path(folder) / "other.json"
        other.write_bytes(pool[0])
        os.environ["WORKBENCH_CACHE"] = folder
        while time.monotonic() < end:
            data = mutate(random.choice(pool), random)
            if data.startswith(b"\x1f\x8b"):
                data = gzip.compress(data) if random.random() < 0.02 else data
            path = Path(folder) / "trace.json"
            path.write_bytes(data)
            try:
                read += ask(path, other)
            except BaseException:
                _KEPT.mkdir(parents=True, exist_ok=True)
                kept = _KEPT / f"crash-{count}-{len(data)}"
                kept.write_bytes(data)
                sys.stderr.write(f"kept as {kept}\n")
                raise
            count += 1
    return count, read


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=time.time_ns())
    given = parser.parse_args()
    count, read = search(given.minutes * 60, Random(given.seed))
    sys.stdout.write(f"{count:,} files, {read:,} of them read: every answer is sound\n")


if __name__ == "__main__":
    main()
