"""Kernels of two traces: added, removed, renamed, faster, slower, or inside the noise."""

import numpy as np
import pandas as pd
import pytest

from tests.analysis.difference.pairs import Call, loop, operators, work
from tests.kineto import Kineto
from workbench.analysis.difference.matching import match_kernels, match_operators
from workbench.analysis.difference.table import difference_table, renamed

GEMM, ADD = "ampere_sgemm_128x64_nn", "vectorized_elementwise_kernel<4, AddFunctor<float>>"
NOISY = [100, 104, 98, 102]
"""Mean 101 µs; standard deviation 2.6."""


def compared(a: Kineto, b: Kineto) -> pd.DataFrame:
    sides = work(a), work(b)
    return difference_table(*sides, match_kernels(*sides)).set_index("name", drop=False)


def test_a_trace_does_not_differ_from_itself() -> None:
    made = loop(Call(GEMM, NOISY), Call(ADD, [10, 11, 10, 12]))
    table = compared(made, made)
    assert (table["difference_ns"] == 0).all()
    assert (table["change"] == "same").all()
    assert not renamed(table).any()


def test_twice_as_fast_beyond_the_spread() -> None:
    """50.5 µs less in each of four steps, while steps differ by 3 µs."""
    table = compared(loop(Call(GEMM, NOISY)), loop(Call(GEMM, [us / 2 for us in NOISY])))
    row = table.loc[GEMM]
    assert row["change"] == "faster"
    assert (row["first_ns"], row["second_ns"]) == (101_000, 50_500)
    assert row["difference_ns"] == -50_500
    assert row["low_ns"] < -50_500 < row["high_ns"] < 0
    assert (row["calls_first"], row["median_first_ns"]) == (1, 101_000)


def test_slower_inside_the_spread_is_the_same() -> None:
    """Means of 101 and 103 µs, and steps that differ by 6."""
    table = compared(loop(Call(GEMM, NOISY)), loop(Call(GEMM, [106, 100, 104, 102])))
    assert table.loc[GEMM, "difference_ns"] == 2000
    assert table.loc[GEMM, "change"] == "same"


def test_one_step_tells_no_spread() -> None:
    table = compared(loop(Call(GEMM, [100])), loop(Call(GEMM, [50])))
    assert table.loc[GEMM, "change"] == "cannot_tell"
    assert np.isnan(table.loc[GEMM, "low_ns"])


def test_added_and_removed() -> None:
    table = compared(
        loop(Call(GEMM, NOISY), Call("flash_fwd_kernel", NOISY)),
        loop(Call(GEMM, NOISY), Call("triton_poi_fused_gelu_0", NOISY)),
    )
    assert table["change"].to_dict() == {
        GEMM: "same",
        "flash_fwd_kernel": "removed",
        "triton_poi_fused_gelu_0": "added",
    }
    assert table.loc["triton_poi_fused_gelu_0", "first_ns"] == 0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ampere_sgemm_128x64_nn", "ampere_hgemm_64x64_nt"),
        ("volta_sgemm_128x64_nn", "ampere_sgemm_32x128_tn"),
        ("vectorized_elementwise_kernel<4, AddFunctor<float>>",) * 2,
        (
            "void at::native::vectorized_elementwise_kernel<4, AddFunctor<float>>(int)",
            "void at::native::vectorized_elementwise_kernel<8, AddFunctor<c10::BFloat16>>(int)",
        ),
        ("triton_poi_fused_add_mul_3", "triton_poi_fused_add_mul_17"),
    ],
)
def test_other_arguments_are_another_name_of_the_same_kernel(before: str, after: str) -> None:
    table = compared(loop(Call(before, NOISY)), loop(Call(after, NOISY)))
    assert list(table["name"]) == [after]
    assert table["name_first"].iloc[0] == before
    assert table["change"].iloc[0] == "same"


def test_another_word_is_another_kernel() -> None:
    """Both are elementwise and unique, but one adds and the other multiplies."""
    other = ADD.replace("Add", "Mul")
    table = compared(
        loop(Call(ADD, NOISY), Call(GEMM, NOISY)),
        loop(Call(GEMM, NOISY), Call(other, NOISY)),
    )
    assert table.loc[[ADD, other], "change"].tolist() == ["removed", "added"]


def test_two_candidates_are_no_match() -> None:
    """Of two tiles nobody can tell which one took the place of the old one."""
    table = compared(
        loop(Call("sgemm_128x64_nn", NOISY), Call(ADD, NOISY)),
        loop(Call("sgemm_64x64_nn", NOISY), Call("sgemm_32x32_nn", NOISY), Call(ADD, NOISY)),
    )
    assert sorted(table["change"]) == ["added", "added", "removed", "same"]


def test_a_kernel_at_the_same_place_of_the_same_family() -> None:
    """Another library's gemm, between the same neighbours."""
    table = compared(
        loop(Call("copy_kernel", NOISY), Call(GEMM, NOISY), Call(ADD, NOISY)),
        loop(Call("copy_kernel", NOISY), Call("nvjet_tst_64x8", NOISY), Call(ADD, NOISY)),
    )
    row = table.loc["nvjet_tst_64x8"]
    assert row["name_first"] == GEMM
    assert row["match"] == "renamed: same place in the step (1 of 1 calls)"


def test_one_piece_more_between_the_neighbours_leaves_the_place_open() -> None:
    table = compared(
        loop(Call("copy_kernel", NOISY), Call(GEMM, NOISY), Call(ADD, NOISY)),
        loop(
            Call("copy_kernel", NOISY),
            Call("nvjet_tst_64x8", NOISY),
            Call("cutlass_wmma_gemm", NOISY),
            Call(ADD, NOISY),
        ),
    )
    assert "removed" in set(table["change"])
    assert not renamed(table).any()


def test_another_family_at_the_same_place_is_another_kernel() -> None:
    table = compared(
        loop(Call("copy_kernel", NOISY), Call(GEMM, NOISY), Call(ADD, NOISY)),
        loop(Call("copy_kernel", NOISY), Call("softmax_warp_forward", NOISY), Call(ADD, NOISY)),
    )
    assert not renamed(table).any()


def test_a_different_number_of_steps_is_compared_per_step() -> None:
    table = compared(loop(Call(GEMM, NOISY)), loop(Call(GEMM, [50, 52])))
    assert table.loc[GEMM, ["first_ns", "second_ns"]].tolist() == [101_000, 51_000]
    assert table.loc[GEMM, ["calls_first", "calls_second"]].tolist() == [1, 1]


def test_time_of_a_sample_where_batches_differ() -> None:
    """101 µs for 32 samples against 202 for 64: the same time a sample."""
    sides = work(loop(Call(GEMM, NOISY))), work(loop(Call(GEMM, [2 * us for us in NOISY])))
    table = difference_table(*sides, match_kernels(*sides), per=(32, 64))
    assert table["difference_ns"].iloc[0] == 0
    assert table["first_ns"].iloc[0] == pytest.approx(101_000 / 32)


def test_families_sum_their_kernels() -> None:
    """Two gemms of 101 µs become one of 50.5 that has another name."""
    a = work(loop(Call("sgemm_a", NOISY), Call("sgemm_b", NOISY), Call(ADD, NOISY))).grouped()
    b = work(loop(Call("Cijk_Ailk", [us / 2 for us in NOISY]), Call(ADD, NOISY))).grouped()
    table = difference_table(a, b, match_kernels(a, b)).set_index("name")
    assert table.loc["gemm", "difference_ns"] == 50_500 - 202_000
    assert table.loc["gemm", "change"] == "faster"
    assert table.loc["elementwise", "change"] == "same"


def test_work_without_a_launch_record_belongs_to_the_step_in_which_it_starts() -> None:
    """At 60 µs of each step, behind the completion of the step before; the first is pre-roll."""
    made = loop(Call(GEMM, NOISY))
    for step in range(4):
        made.kernel("graph_node", step * 1000 + 60, 10)
    found = work(made)
    assert found.calls[found.names.index("graph_node")].tolist() == [0, 1, 1, 1]


def test_void_times_carry_no_verdict() -> None:
    sides = work(loop(Call(GEMM, NOISY))), work(loop(Call(GEMM, [us / 2 for us in NOISY])))
    table = difference_table(*sides, match_kernels(*sides), certain=False)
    assert table["change"].tolist() == ["cannot_tell"]


def test_operators_count_their_own_time_only() -> None:
    """aten::linear calls aten::mm: 40 µs in all, 30 of them in mm, which launched the kernel."""
    made = Kineto(gpu=True)
    for step in range(3):
        at = step * 1000.0
        made.step(step, at, 1000)
        made.op("aten::linear", at + 10, 40)
        made.op("aten::mm", at + 15, 30)
        made.launched(GEMM, call=(at + 20, 5), kernel=(at + 30, 100), correlation=step + 1)
    found = operators(made)
    host = dict(zip(found.host.names, found.host.ns.mean(axis=1), strict=True))
    assert host == {"aten::linear": 10_000, "aten::mm": 30_000}
    assert found.device is not None
    device = dict(zip(found.device.names, found.device.ns.mean(axis=1), strict=True))
    assert device == {"aten::linear": 0, "aten::mm": 100_000}


def test_an_operator_with_another_number_is_another_operator_unless_a_compiler_counts() -> None:
    before, after = "inductor::graph 3f2a9c01d4", "inductor::graph 77b0e1f2aa"
    sides = (operators(loop(Call(GEMM, NOISY), operator=name)).host for name in (before, after))
    assert [pair.reason for pair in match_operators(*sides)] == ["renamed: same but for a number"]
    two = operators(loop(Call(GEMM, NOISY), operator="aten::conv2d")).host
    three = operators(loop(Call(GEMM, NOISY), operator="aten::conv3d")).host
    assert len(match_operators(two, three)) == 2
