"""Mutated traces through everything that is asked of a trace; hours of it: tests.soak.answers."""

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.soak.answers import ask
from tests.soak.mutation import mutate
from tests.trace.test_fuzz import seeds

pytestmark = pytest.mark.slow

KERNEL: dict[str, Any] = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "dur": 5}
ARGS = {"device": 0, "stream": 7, "correlation": 1}


def document(*events: dict[str, Any], **header: Any) -> bytes:
    return json.dumps({**header, "traceEvents": list(events)}).encode()


def kernels(**changes: Any) -> list[dict[str, Any]]:
    return [KERNEL | {"ts": 10 * at, "args": ARGS} | changes for at in range(3)]


def steps(*numbers: Any) -> list[dict[str, Any]]:
    mark = KERNEL | {"cat": "user_annotation", "dur": 9}
    return [mark | {"name": f"ProfilerStep#{n}", "ts": 10 * at} for at, n in enumerate(numbers)]


ODD = {
    "no length anywhere": document(*kernels(dur=0)),
    "all at one moment": document(*kernels(ts=5)),
    "steps of no length": document(*[step | {"dur": 0} for step in steps(1, 2, 3)], *kernels()),
    "steps that run backwards": document(*steps(3, 2, 1), *kernels()),
    "steps without a number": document(*steps("", "x", -1, "9" * 40), *kernels()),
    "the largest device": document(*kernels(args=ARGS | {"device": 2**15 - 1})),
    "a collective of nobody": document(
        *kernels(
            name="ncclDevKernel_AllReduce",
            args=ARGS | {"Collective name": "allreduce", "Group size": 0, "In msg nelems": 2**62},
        )
    ),
    "a grid of everything": document(*kernels(args=ARGS | {"grid": [2**40, -1], "block": "x"})),
    "a device of nothing": document(
        *kernels(args=ARGS | {"grid": [1, 1, 1], "block": [32, 1, 1]}),
        deviceProperties=[{"id": 0, "name": "NVIDIA A100", "numSms": 0, "warpSize": 0}],
    ),
    "a rank behind the world": document(*kernels(), distributedInfo={"rank": 5, "world_size": 2}),
    "negative and missing": document(*kernels(dur=-5), *kernels(ts=None), *kernels(pid=None)),
    "calls with one id": document(
        *kernels(cat="cuda_runtime", name="cudaLaunchKernel", args={"correlation": 1}), *kernels()
    ),
}


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sound trace to compare with."""
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "other.json"
    path.write_bytes(seeds()[0])
    return path


@pytest.mark.parametrize("name", ODD)
def test_odd_traces_are_analyzed_compared_and_converted(
    name: str, other: Path, tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(ODD[name])
    assert ask(path, other)


def test_changed_traces_give_sound_answers_or_one_error(other: Path, tmp_path: Path) -> None:
    path, read = tmp_path / "trace.json", 0
    pool = [*seeds(), gzip.compress(seeds()[0])]
    for number in range(20):
        random = Random(number)
        path.write_bytes(mutate(random.choice(pool), random))
        read += ask(path, other)
    assert 5 < read < 20  # some are answered, and some refused
