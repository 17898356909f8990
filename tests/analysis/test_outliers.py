"""Which steps are far longer than the others, and what was different in them."""

import numpy as np
import pytest

from tests.analysis.traces import US, columns
from tests.kineto import Kineto
from workbench.analysis.outliers import Outlier, outlier_steps
from workbench.run.rank import RankAnalysis


def found_in(made: Kineto) -> tuple[Outlier, ...]:
    trace = columns(made)
    (found,) = RankAnalysis(source="hand", rank=None, read=lambda: trace).details.outliers.values()
    return found


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([100, 101, 99, 100, 150], [4]),
        ([100, 101, 99, 100, 109], []),  # less than a tenth beyond the median of 100
        ([100, 120, 80, 110, 135], []),  # deviations 20 10 30 0 25: 110 + 3.5 * 1.48 * 20 = 214
        ([100, 100, 300, 300], []),  # of four steps nobody can say which is unusual
        ([100, 100, 100, 100, 20], []),  # a short step is no slow one
    ],
)
def test_the_rule_asks_for_deviations_and_for_a_share(
    times: list[int], expected: list[int]
) -> None:
    assert np.flatnonzero(outlier_steps(np.array(times))).tolist() == expected


def test_two_slow_steps_of_eight_do_not_hide_each_other() -> None:
    """The mean would be 150 and the standard deviation 87: nothing would lie beyond three."""
    assert outlier_steps(np.array([100, 100, 101, 99, 300, 100, 300, 100])).sum() == 2


def gpu_loop(*, late: int, wait: float) -> Kineto:
    """Eight steps of 100 us, a kernel of 40 us in each; one step waits for its data first."""
    made = Kineto(gpu=True)
    at = 0.0
    for number in range(8):
        extra = wait if number == late else 0
        made.step(number, at, 100 + extra)
        made.loader(at + 1, 5 + extra)
        made.op("aten::mm", at + 10 + extra, 20, **{"Input Dims": [[8, 4], [4, 2]]})
        made.launched(
            "gemm", call=(at + 12 + extra, 4), kernel=(at + 50 + extra, 40), correlation=number + 1
        )
        at += 100 + extra
    return made


def test_the_part_that_grew_and_the_long_gap_are_named() -> None:
    """Step 5 waits 200 us longer: 300 of the usual 100, all of the excess waiting for data."""
    (slow,) = found_in(gpu_loop(late=5, wait=200))
    assert (slow.step, slow.time_ns, slow.excess_ns) == (5, 300 * US, 200 * US)
    assert slow.grew == (("input", 200 * US),)
    assert slow.gap is not None
    assert (slow.gap.cause, slow.gap.end - slow.gap.start) == ("input", 205 * US)
    assert slow.gap.host is not None
    assert slow.gap.host.startswith("enumerate(DataLoader)")


def test_equal_steps_have_no_outlier() -> None:
    assert found_in(gpu_loop(late=-1, wait=0)) == ()


def test_what_first_occurs_in_the_slow_step_is_told() -> None:
    made = gpu_loop(late=5, wait=200)
    made.op("aten::mm", 520, 8, **{"Input Dims": [[9, 4], [4, 2]]})
    made.op("aten::save", 530, 8)
    made.launched("other_gemm", call=(521, 4), kernel=(545, 4), correlation=99)
    (slow,) = found_in(made)
    assert slow.new_shapes == ("aten::mm [[9,4],[4,2]]",)
    assert slow.new_kernels == ("other_gemm",)
    assert slow.only_here == ("aten::save",)


def test_collected_garbage_is_counted_inside_the_step() -> None:
    made = gpu_loop(late=5, wait=200)
    made.range("workbench.gc", 600, 50)
    (slow,) = found_in(made)
    assert slow.garbage_ns == 50 * US


def test_without_a_probe_nobody_knows_about_garbage() -> None:
    (slow,) = found_in(gpu_loop(late=5, wait=200))
    assert slow.garbage_ns is None


def test_on_the_cpu_the_parts_are_those_of_the_loop() -> None:
    """Six steps of 100 us, the fourth of 180 us, all of it operators."""
    made = Kineto()
    at = 0
    for number in range(6):
        extra = 80 if number == 3 else 0
        made.step(number, at, 100 + extra)
        made.op("aten::mm", at + 10, 50 + extra)
        at += 100 + extra
    (slow,) = found_in(made)
    assert (slow.step, slow.excess_ns, slow.gap) == (3, 80 * US, None)
    assert slow.grew == (("other_operators", 80 * US),)
