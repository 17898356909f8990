"""Which calls of two ranks are the same collective."""

from collections.abc import Sequence

import numpy as np

from workbench.analysis.collective_records import Call
from workbench.analysis.collectives import HOST, Collectives, Pieces
from workbench.analysis.ranks.clock import common_clock
from workbench.analysis.ranks.matching import match
from workbench.analysis.ranks.part import RankPart

NOTHING = np.empty(0, np.int64)
PIECES = Pieces(start=NOTHING, end=NOTHING, call=NOTHING)


def part(
    ends: Sequence[int], *, kinds: str = "", group: str = "0", numbers: Sequence[int] = ()
) -> RankPart:
    """A rank whose calls end at the given nanoseconds; letters tell their kinds."""
    calls = tuple(
        Call(
            kind="all_reduce",
            split="minimum",
            shown_kind=kinds[i : i + 1],
            group=group,
            sequence=numbers[i] if numbers else None,
        )
        for i in range(len(ends))
    )
    end = np.array(ends, np.int64)
    return RankPart(
        rank=None,
        collectives=Collectives(
            calls=calls,
            start=end - 5,
            end=end,
            device=np.full(len(ends), HOST),
            clock=np.zeros(len(ends), np.int64),
            owned=PIECES,
            exposed=PIECES,
        ),
        base_ns=0,
        windows={},
        steps=None,
        step_ns=None,
        phases={},
    )


def pairs(*parts: RankPart) -> list[tuple[int, int]]:
    return [(each[0], each[1]) for each in match(parts).members]


def test_captures_that_begin_differently_are_counted_from_the_end() -> None:
    assert pairs(part([10, 20, 30]), part([20, 30])) == [(1, 0), (2, 1)]


def test_a_capture_that_stopped_one_call_early_shows_by_when_calls_end() -> None:
    """Rank 1 lacks the last call; by irregular ends (its clock is 1000 ahead) 0-1-2 fit 0-1-2."""
    assert pairs(part([10, 31, 77, 90]), part([1010, 1031, 1077])) == [(0, 0), (1, 1), (2, 2)]


def test_a_single_pair_that_ends_together_proves_no_early_end() -> None:
    """Ends of six all-reduces over gloo, in µs: two processes of one machine are up to 10 ms apart.

    Any shift that leaves one pair, or by chance three, has less scatter; the right one is none.
    """
    one = part([87_217, 134_238, 173_821, 217_475, 266_196, 322_920])
    other = part([89_467, 136_918, 182_897, 226_333, 262_388, 324_251])
    assert pairs(one, other) == [(i, i) for i in range(6)]


def test_of_two_calls_each_has_its_partner() -> None:
    assert pairs(part([10, 50]), part([13, 41])) == [(0, 0), (1, 1)]


def test_a_capture_that_stopped_early_shows_by_what_it_runs() -> None:
    one, other = part([10, 20, 30, 40], kinds="abac"), part([20, 30, 40], kinds="aba")
    assert pairs(one, other) == [(0, 0), (1, 1), (2, 2)]


def test_sequence_numbers_win() -> None:
    one = part([10, 20, 30], numbers=[7, 8, 9])
    assert pairs(one, part([10, 20], numbers=[7, 8])) == [(0, 0), (1, 1)]


def test_different_groups_and_different_programs_do_not_match() -> None:
    assert match([part([10]), part([10], group="1")]).members == ()
    lost = match([part([1, 2, 3], kinds="aaa"), part([1, 2, 3], kinds="bbb")])
    assert (lost.members, lost.unmatched) == ((), (1,))


def test_the_clock_is_the_median_of_the_ends_and_says_what_is_left() -> None:
    """Rank 1 shows 100 more; one of five ends 7 off, which the 95th percentile still sees."""
    one, other = part([10, 20, 30, 40, 50]), part([110, 120, 130, 140, 157])
    clock = common_clock([one, other], match([one, other]))
    assert clock.correction_ns == (0, -100)
    assert clock.residual_ns == 5  # 0 0 0 0 7: between the last two, at 0.8 of the way
    assert clock.aligned


def test_ranks_are_tied_through_a_rank_between_them() -> None:
    """Rank 1 is in both groups: 0 and 1 differ by 100, 1 and 2 by 50."""
    left, right = part([10, 20]), part([160, 170], group="1")
    both = part([110, 120])
    assert both.collectives is not None
    second = part([110, 120], group="1").collectives
    assert second is not None
    joined = Collectives(
        calls=(*both.collectives.calls, *second.calls),
        start=np.concatenate([both.collectives.start, second.start]),
        end=np.concatenate([both.collectives.end, second.end]),
        device=np.full(4, HOST),
        clock=np.zeros(4, np.int64),
        owned=PIECES,
        exposed=PIECES,
    )
    middle = RankPart(
        rank=1,
        collectives=joined,
        base_ns=0,
        windows={},
        steps=None,
        step_ns=None,
        phases={},
    )
    parts = [left, middle, right]
    assert common_clock(parts, match(parts)).correction_ns == (0, -100, -150)
