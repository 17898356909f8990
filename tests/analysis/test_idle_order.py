"""Where two rules would answer, the first one wins: each pair of neighbours, nested both ways.

The device is idle from 100 to 200 us and the launching call begins at 180. Two records cover
[110, 170) and [120, 160) of the launching thread; whichever is outside, the stronger rule must have
the part that both cover.
"""

from collections.abc import Callable

import pytest

from tests.analysis.idle_cases import causes, explained, gap
from tests.kineto import Kineto

Adder = Callable[[Kineto, float, float], object]


def call(name: str) -> Adder:
    return lambda made, ts, dur: made.runtime(name, ts, dur, correlation=90)


def capture(made: Kineto, ts: float, dur: float) -> None:
    made.runtime("cudaStreamBeginCapture", ts, 1, correlation=91)
    made.runtime("cudaStreamEndCapture", ts + dur - 1, 1, correlation=92)


RULES: tuple[tuple[str, Adder], ...] = (
    ("profiler", lambda made, ts, dur: made.range("workbench.profiler", ts, dur)),
    ("kernel_loading", call("cuModuleLoadData")),
    ("input", lambda made, ts, dur: made.loader(ts, dur)),
    ("allocation", call("cudaMalloc")),
    ("graph_capture", capture),
    ("compilation", lambda made, ts, dur: made.op("dynamo", ts, dur)),
    ("synchronization", call("cudaStreamSynchronize")),
    ("garbage_collection", lambda made, ts, dur: made.range("workbench.gc", ts, dur)),
    ("host_operators", lambda made, ts, dur: made.op("aten::mm", ts, dur)),
    (
        "host_python",
        lambda made, ts, dur: made.python("train.py(1): f", ts, dur, ident=1, parent=None),
    ),
)
"""The order of the rules, the strongest first, each with a record that shows it."""

PAIRS = [(i, j) for i in range(len(RULES)) for j in range(i + 1, len(RULES))]


@pytest.mark.parametrize(("strong", "weak"), PAIRS)
def test_the_stronger_rule_has_what_both_cover(strong: int, weak: int) -> None:
    for inner, outer in ((strong, weak), (weak, strong)):
        made = gap()
        RULES[outer][1](made, 110, 60)
        RULES[inner][1](made, 120, 40)
        found = causes(explained(made))
        shared = 60 if outer == strong else 40
        assert found[RULES[strong][0]] == shared
        assert found.get(RULES[weak][0], 0) == 60 - shared


def test_what_the_device_does_after_the_call_is_asked_before_all_host_rules() -> None:
    made = gap(call=(60, 5))
    made.loader(110, 60)
    assert causes(explained(made)) == {"kernel_gap": 100}


def test_inside_the_call_only_the_profiler_and_loading_are_told_apart() -> None:
    """An allocation inside a launch call is part of launching."""
    made = gap(call=(150, 50))
    made.runtime("cudaMalloc", 155, 10, correlation=91)
    made.runtime("cuModuleLoadData", 170, 10, correlation=92)
    assert causes(explained(made)) == {"host_other": 50, "launch": 40, "kernel_loading": 10}
