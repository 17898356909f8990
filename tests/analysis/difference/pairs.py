"""Two traces written by hand: steps of 1000 µs with the kernels that a test asks for."""

from collections.abc import Sequence
from typing import NamedTuple

from tests.analysis.traces import columns
from tests.kineto import Kineto
from workbench.analysis.difference.by_step import ByStep
from workbench.analysis.difference.device_work import device_work
from workbench.analysis.difference.operator_work import OperatorWork, operator_work
from workbench.analysis.launches import join_launches
from workbench.analysis.steps import find_steps

STEP = 1000.0


class Call(NamedTuple):
    """One kernel with its length in every step, in µs."""

    name: str
    us: Sequence[float]


def loop(*calls: Call, operator: str = "aten::mm", gpu: bool = True) -> Kineto:
    """Steps in which the kernels run one after the other, each launched by its own operator."""
    made = Kineto(gpu=gpu)
    steps = len(calls[0].us)
    for step in range(steps):
        at = step * STEP
        made.step(step, at, STEP)
        begin = at + 100
        for place, call in enumerate(calls):
            made.op(operator, at + 10 + 5 * place, 4)
            made.launched(
                call.name,
                call=(at + 11 + 5 * place, 2),
                kernel=(begin, call.us[step]),
                correlation=1 + place + step * len(calls),
            )
            begin += call.us[step]
    return made


def work(made: Kineto) -> ByStep:
    """The device work of a trace written by hand."""
    trace = columns(made)
    launches = join_launches(trace)
    found = device_work(trace, launches, find_steps(trace, launches))
    assert found is not None
    return found


def operators(made: Kineto) -> OperatorWork:
    """The operators of a trace written by hand."""
    trace = columns(made)
    launches = join_launches(trace)
    found = operator_work(trace, launches, find_steps(trace, launches))
    assert found is not None
    return found
