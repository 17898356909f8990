"""How much time and memory each analysis takes, beside loading the trace that it reads.

Run it as ``python benchmarks/analyses.py [--sizes 107 500] [--stacks] [--only causes]``. Every row
is a process of its own that loads the trace and then answers one question: CPU seconds of the
answer and of what it is made from, and the peak of the whole process against that of loading alone.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.trace_engine import generate


def loading(trace: Any) -> Any:
    """Nothing more."""
    return trace


def joining(trace: Any) -> Any:
    """Launches joined to their work, and the steps: what most others need."""
    from workbench.analysis.launches import join_launches
    from workbench.analysis.steps import find_steps

    launches = join_launches(trace)
    return launches, find_steps(trace, launches)


def evidence(trace: Any) -> Any:
    """Host records nested and classified."""
    from workbench.analysis.evidence import gather_evidence

    launches, steps = joining(trace)
    return launches, steps, gather_evidence(trace, launches, steps)


def causes(trace: Any) -> Any:
    """Idle time of the recording by cause."""
    from workbench.analysis.devices import device_indices
    from workbench.analysis.idle import attribute_idle
    from workbench.analysis.window import recording

    launches, steps, found = evidence(trace)
    device = device_indices(trace)[0]
    span = recording(trace, device)
    assert span is not None
    return attribute_idle(trace, device, span, steps, launches, evidence=found)


def trust(trace: Any) -> Any:
    """Every check of trust."""
    from workbench.analysis.trust import check_trust

    launches, steps = joining(trace)
    return check_trust(trace, launches, steps)


def kernels(trace: Any) -> Any:
    """The table of kernels."""
    from workbench.analysis.kernels import kernel_table

    return kernel_table(trace, None)


def operators(trace: Any) -> Any:
    """The table of operators."""
    from workbench.analysis.operators import operator_table

    return operator_table(trace, joining(trace)[0], None)


def queue(trace: Any) -> Any:
    """Launch statistics."""
    from workbench.analysis.devices import device_indices
    from workbench.analysis.queue import launch_statistics

    launches, steps = joining(trace)
    return launch_statistics(trace, steps, launches, device_indices(trace)[0])


def device_time(trace: Any) -> Any:
    """Busy time by class, and the breakdown's classes."""
    from workbench.analysis.device_time import device_time as summed
    from workbench.analysis.devices import device_indices
    from workbench.analysis.window import recording

    device = device_indices(trace)[0]
    span = recording(trace, device)
    assert span is not None
    return summed(trace, device, span)


def together(trace: Any) -> Any:
    """All of them, one after the other, with launches, steps and evidence made once."""
    from workbench.analysis.devices import device_indices
    from workbench.analysis.idle import attribute_idle
    from workbench.analysis.operators import operator_table
    from workbench.analysis.queue import launch_statistics
    from workbench.analysis.trust import check_trust
    from workbench.analysis.window import recording

    launches, steps, found = evidence(trace)
    device = device_indices(trace)[0]
    span = recording(trace, device)
    assert span is not None
    return (
        check_trust(trace, launches, steps),
        kernels(trace),
        operator_table(trace, launches, None),
        launch_statistics(trace, steps, launches, device),
        device_time(trace),
        attribute_idle(trace, device, span, steps, launches, evidence=found),
    )


def steps(trace: Any) -> object:
    """Every step by parts, and what differs in slow ones; the causes of idle time included."""
    found = _details(trace)
    return [found.steps, found.outliers]


def launching(trace: Any) -> object:
    """Launch delays, short kernels and the queue over time."""
    return _details(trace).launches


def copying(trace: Any) -> object:
    """Copies by kind."""
    return _details(trace).copies


def phases(trace: Any) -> object:
    """Forward, backward and optimizer."""
    return _details(trace).phases


def shapes(trace: Any) -> object:
    """Operators by shapes."""
    return _details(trace).operator_shapes


def groups(trace: Any) -> object:
    """Communication by process group."""
    return _details(trace).groups


def everything(trace: Any) -> object:
    """All that a Run answers of a trace but the replay, in one process."""
    from workbench.run.rank import RankAnalysis

    rank = RankAnalysis(source="benchmark", rank=None, read=lambda: trace)
    found = rank.details
    return [
        (rank.trust, rank.device_time, rank.idle, rank.kernels, rank.operators),
        (rank.launch_statistics, rank.collectives, rank.memory, rank.host_breakdown),
        (found.steps, found.outliers, found.launches, found.copies, found.phases),
        (found.operator_shapes, found.groups),
    ]


def replay(trace: Any) -> object:
    """One step replayed: its critical path, and every what-if; evidence included."""
    from workbench.analysis.replay.answers import bounds, critical_path, replay_steps
    from workbench.analysis.replay.span import median_step

    _, steps, found = evidence(trace)
    assert steps is not None
    step = replay_steps(found, steps, median_step(steps))
    assert step is not None
    return critical_path(step), bounds(step)


def _details(trace: Any) -> Any:
    from workbench.run.rank import RankAnalysis

    return RankAnalysis(source="benchmark", rank=None, read=lambda: trace).details


ANALYSES: tuple[Callable[[Any], Any], ...] = (
    loading,
    joining,
    evidence,
    causes,
    trust,
    kernels,
    operators,
    queue,
    device_time,
    together,
    steps,
    launching,
    copying,
    phases,
    shapes,
    groups,
    everything,
    replay,
)


def answer_once(name: str, path: Path) -> None:
    """Load and answer in this process; print CPU seconds and peaks as JSON."""
    import pandas  # noqa: F401  # what tables are made of is no part of an answer's cost

    from workbench import trace

    begin = time.process_time()
    table = trace.read(path)
    loaded = time.process_time()
    analysis = next(each for each in ANALYSES if each.__name__ == name)
    result = analysis(table)
    done = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        json.dumps(
            {
                "load": loaded - begin,
                "seconds": done - loaded,
                "peak": peak,
                "events": len(table.events),
                "answered": result is not None,
            }
        )
    )


def compare(size: float, only: list[str], *, stacks: bool) -> None:
    """Print a table for a trace of the given size in MB."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        generate(path, size, stacks=stacks)
        base: dict[str, Any] = {}
        for each in ANALYSES:
            if only and each.__name__ not in (*only, "loading"):
                continue
            command = [sys.executable, __file__, "--answer", each.__name__, str(path)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found = json.loads(done.stdout)
            if not base:
                base = found
                print(f"\n{size:g} MB, {found['events']} events")
                print("| analysis | CPU s | of loading | peak MiB | of loading |")
                print("|---|---|---|---|---|")
                found = {**found, "seconds": found["load"]}
            seconds, peak = found["seconds"], found["peak"]
            print(
                f"| {each.__name__} | {seconds:.2f} | {seconds / base['load']:.2f} "
                f"| {peak:.0f} | {peak / base['peak']:.2f} |",
                flush=True,
            )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=float, nargs="+", default=[107])
    parser.add_argument("--stacks", action="store_true", help="with Python stack records")
    parser.add_argument("--only", nargs="*", default=[], help="names of analyses")
    parser.add_argument("--answer", nargs=2, metavar=("NAME", "PATH"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.answer:
        answer_once(given.answer[0], Path(given.answer[1]))
        return
    for size in given.sizes:
        compare(size, given.only, stacks=given.stacks)


if __name__ == "__main__":
    main()
