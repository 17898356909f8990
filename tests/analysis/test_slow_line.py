"""Which line of the user's makes one step slow?"""

from pathlib import Path

import workbench as wb
from tests.kineto import Kineto
from workbench.analysis.slow_line import SlowLine, slow_line


def steps(hook_us: dict[int, float], *, name: str = "train.py(40): log") -> Kineto:
    """Eight steps of 1000 µs; a hook in some of them, which makes them longer.

    The loop's own frame spans all, that of a step each step, and a library's frame is inside.
    """
    trace, at, ident = Kineto(), 0.0, 2
    lengths = [1000 + hook_us.get(number, 0) for number in range(8)]
    trace.python("train.py(1): main", 0, sum(lengths), ident=1, parent=None)
    for number, length in enumerate(lengths):
        trace.step(number, at, length)
        trace.op("aten::mm", at + 10, 100)
        trace.python("train.py(10): step", at + 1, length - 2, ident=ident, parent=1)
        if number in hook_us:
            took = hook_us[number]
            trace.python(name, at + 500, took, ident=ident + 1, parent=ident)
            trace.python(
                "torch/_tensor.py(3): cpu", at + 501, took - 2, ident=ident + 2, parent=ident
            )
        at, ident = at + length, ident + 3
    return trace


def found(trace: Kineto, folder: Path) -> SlowLine | None:
    rank = wb.open(trace.write(folder / "t.json")).ranks[0]
    return slow_line(rank.trace, rank.steps)


def test_the_innermost_line_of_the_user_in_the_slowest_step_is_named(tmp_path: Path) -> None:
    """1500 of 2500 µs are the hook's; ``step`` takes as much more, and holds it."""
    assert found(steps({5: 1500}), tmp_path) == SlowLine(
        line="train.py(40): log", excess_ns=1_500_000
    )


def test_a_line_that_takes_as_long_in_every_step_makes_none_slow(tmp_path: Path) -> None:
    assert found(steps(dict.fromkeys(range(8), 200.0)), tmp_path) is None


def test_a_step_that_is_slow_by_something_else_blames_no_line(tmp_path: Path) -> None:
    """The hook takes 100 of the 1500 µs that its step takes more; ``step`` takes all of them."""
    trace = steps({5: 1500})
    for event in trace.events:
        if event["name"] == "train.py(40): log":
            event["dur"] = 100
    assert found(trace, tmp_path) == SlowLine(line="train.py(10): step", excess_ns=1_500_000)


def test_without_stacks_nothing_is_known(tmp_path: Path) -> None:
    trace = steps({5: 1500})
    trace.events[:] = [each for each in trace.events if each.get("cat") != "python_function"]
    assert found(trace, tmp_path) is None
