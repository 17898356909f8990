"""What a verification says of its numbers, and what it advises."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.tuning.made import block, found, trial
from workbench.findings import Finding
from workbench.settings import Settings
from workbench.tuning.earlier import earlier_text
from workbench.tuning.keeping import keep
from workbench.tuning.parity import Parity
from workbench.tuning.trial import FairRuns, Trial, losses_after_as_many
from workbench.tuning.verification import Verification

pytestmark = pytest.mark.slow

EXPECTED = Parity(verdict="as_expected", reason="all differences are within rounding.")


def verified(
    before_ms: float,
    after_ms: float,
    *,
    parity: Parity | None = EXPECTED,
    finding: Finding | None = None,
    after: Trial | None = None,
    **more: Any,
) -> Verification:
    """Four steady blocks of five steps a side; neighbouring blocks differ by 1 %."""
    a, again = ([block([before_ms * (1 + 0.01 * (k % 2))] * 5) for k in range(4)] for _ in range(2))
    b = [block([after_ms * (1 + 0.01 * (k % 2))] * 5) for k in range(4)]
    setting = Settings(precision="bf16")
    return Verification(
        settings=setting,
        base=Settings(),
        finding=finding,
        fair=FairRuns(
            trials=(trial(a), after or trial(b, setting, **more), trial(again)),
            ended="finished",
            elapsed_s=1.0,
        ),
        parity=parity,
        before=None,
        after=None,
    )


def test_a_gain_with_numbers_as_expected_is_kept():
    answer = verified(100, 70)
    assert answer.advice == "keep"
    assert answer.change.verdict == "faster"
    assert answer.change.ratio == pytest.approx(0.7, abs=0.01)
    assert answer.sentence.startswith("▲ precision=bf16 is faster: 30 %")
    assert answer.sentence.endswith("its numbers are as expected: keep it.")


@pytest.mark.parametrize(
    ("before", "after", "parity", "advice"),
    [
        (100, 130, "as_expected", "revert"),
        (100, 70, "differs", "revert"),
        (100, 70, "diverges", "revert"),
        (100, 70, "cannot_tell", "cannot tell"),
        (100, 100, "as_expected", "cannot tell"),
        (100, 100, "differs", "revert"),
    ],
)
def test_advice_follows_from_time_and_numbers(
    before: float, after: float, parity: Any, advice: str
):
    answer = verified(before, after, parity=Parity(verdict=parity, reason="because."))
    assert answer.advice == advice


def test_a_gain_without_a_look_at_the_numbers_is_not_advised():
    assert verified(100, 70, parity=None).advice == "cannot tell"


@pytest.mark.parametrize(
    ("outcome", "said", "advice"),
    [
        ("out_of_memory", "out of memory, everything was put back", "revert"),
        ("refused", "cannot act here: no such thing", "revert"),
        ("error", "fails: no such thing", "revert"),
        ("timed_out", "hung or was too slow", "cannot tell"),
        ("not_measured", "ended before it", "cannot tell"),
    ],
)
def test_what_did_not_run_is_told_for_what_it_is(outcome: Any, said: str, advice: str):
    failed = Trial(
        settings=Settings(precision="bf16"),
        outcome=outcome,
        reason="no such thing",
        blocks=(),
        warmup_ns=(),
        effective={},
        compilation=None,
    )
    answer = verified(100, 70, after=failed, parity=None)
    assert said in answer.sentence
    assert answer.advice == advice
    assert "precision=bf16" in repr(answer)


def test_a_gain_within_the_bound_holds_it_and_a_larger_one_does_not():
    # 100 ms a step of which at most 40 ms can go: 60 % of the time at least.
    within = verified(100, 70, finding=found(saving_ns_per_step_at_most=40e6))
    assert within.bound.saving == pytest.approx(0.4, abs=0.01)
    assert within.bound.held is True
    assert "at most 40 % was possible" in within.sentence
    beyond = verified(100, 30, finding=found(speedup_at_most=2.0))
    assert beyond.bound.saving == pytest.approx(0.5)
    assert beyond.bound.held is False
    assert "more than the 50 % that was thought possible" in beyond.sentence
    assert verified(100, 70, finding=found()).bound is None


def test_the_same_setting_asked_twice_tells_what_it_was_before(tmp_path: Path):
    """WB101 and WB102 name one setting: 30 % less for the first, 30 % more for the second."""

    def kept(after_ms: float, code: str, **more: Any) -> Verification:
        answer = replace(verified(100, after_ms, finding=found(code=code)), **more)
        return replace(answer, folder=keep(tmp_path, "demo-precision=bf16", answer))

    first = kept(70, "WB101")
    assert earlier_text(first) is None
    other = kept(70, "WB101", settings=Settings(channels_last=True))
    assert earlier_text(other) is None, "another setting is another question"
    same = kept(71, "WB102")
    said = earlier_text(same)
    assert said is not None
    assert "measured before for WB101 (demo-precision=bf16.verification.json): ▲ 30 %" in said
    assert "contradict" not in said
    against = kept(130, "WB102")
    assert "contradict each other" in str(earlier_text(against))
    assert "contradict each other" in " ".join(repr(against).split())


def test_medians_whose_ratio_is_not_the_verdicts_are_explained():
    """Two blocks of 100 and two of 300 ms each time, and 10 ms more for half of one side's steps.

    The verdict takes block against block; a median of all steps falls between the two paces.
    """
    answer = verified(100, 70)
    assert "their ratio is" not in repr(answer)
    a = [block([ms] * 5) for ms in (100, 100, 300, 300)]
    b = [block([ms] * 5) for ms in (90, 90, 90, 270)]
    fair = FairRuns(trials=(trial(a), trial(b), trial(a)), ended="finished", elapsed_s=1.0)
    told = " ".join(repr(replace(answer, fair=fair)).split())
    assert "median step of all blocks 200 ms 90.0 ms" in told
    assert "their ratio is 0.45 for the verdict's" in told


def test_memory_that_changes_is_said_and_a_little_is_not():
    rss = {"peak_rss_bytes": 1_000_000_000}
    blocks = [block([100] * 5, **rss)] * 4
    less = [block([100] * 5, peak_rss_bytes=600_000_000)] * 4
    for side, said in ((less, "memory 600 MB instead of 1.00 GB"), (blocks, None)):
        answer = Verification(
            settings=Settings(accumulation=2),
            base=Settings(),
            finding=None,
            fair=FairRuns(
                trials=(trial(blocks), trial(side), trial(blocks)), ended="finished", elapsed_s=1.0
            ),
            parity=EXPECTED,
            before=None,
            after=None,
        )
        assert (said in answer.sentence) if said else ("memory" not in answer.sentence)


def test_it_shows_itself_as_page_and_as_text_and_escapes_what_others_wrote():
    answer = verified(100, 70, parity=Parity(verdict="cannot_tell", reason="<b>bold</b> words"))
    shown = answer._repr_mimebundle_()
    assert "&lt;b&gt;bold" in shown["text/html"]
    assert "<b>bold" not in shown["text/html"]
    assert "median step" in shown["text/plain"]
    assert max(map(len, repr(answer).splitlines())) <= 80
    document = json.loads(json.dumps(answer.to_json(), allow_nan=False))
    assert document["schema"] == "workbench.verification/1"
    assert document["trials"][0]["blocks"][0]["step_us"] == [100_000] * 5
    assert document["trials"][0]["peak_rss_bytes"] is None


def test_compilation_has_paid_only_where_a_gain_is_sure():
    # 5 s of compilation, 30 ms saved a step: 5000 / 30 = 167 steps.
    compiling = {"warmup_ms": [5070, 70], "compiled": True}
    assert verified(100, 70, **compiling).break_even_steps == pytest.approx(167, abs=3)
    assert verified(100, 99.9, **compiling).break_even_steps is None


def test_losses_are_compared_after_as_many_samples():
    # The larger batch has seen 32 samples after its second step, the smaller one after its fourth.
    small = trial([block([10] * 4, samples=8, losses=(4.0, 3.0, 2.0, 1.0, 0.5))])
    large = trial([block([10] * 2, samples=16, losses=(3.5, 1.1))])
    assert losses_after_as_many(small, large) == (1.0, 1.1)
    longer = trial([block([10] * 4, losses=(4.0, 3.0, 2.0, 1.0, 0.5, 0.4, 0.3))])
    assert losses_after_as_many(small, longer) == (0.5, 0.5)
    assert losses_after_as_many(small, trial([block([10] * 4)])) == (0.5, None)


def test_a_value_that_was_in_force_already_is_said_to_have_switched_nothing():
    same = {"workers": 0, "batch_size": 8, "threads": 2}
    one = replace(trial([block([1.0] * 5)] * 4), effective=same)
    found = Verification(
        settings=Settings(workers=0),
        base=Settings(),
        finding=None,
        fair=FairRuns(trials=(one, one, one), ended="finished", elapsed_s=1.0),
        parity=EXPECTED,
        before=None,
        after=None,
    )
    assert found.sentence == "≈ workers=0 is in force without it already: nothing was switched."
    other = replace(one, effective={**same, "threads": 1})
    some = replace(
        found,
        settings=Settings(workers=0, threads=1),
        fair=replace(found.fair, trials=(one, other, one)),
    )
    assert some.in_force_already == ("workers",)
    assert "nothing was switched" not in some.sentence
    assert "workers has this value without the setting already." in repr(some)


def test_slow_steps_that_a_median_does_not_see_are_in_the_sentence():
    even = [block([1.0, 1.01, 1.0, 1.01, 1.0])] * 4
    # The middle of 0.9 0.9 0.9 0.9 1.8 is 0.9, their mean 1.08.
    uneven = [block([0.9, 0.9, 1.8, 0.9, 0.9])] * 4
    found = replace(
        verified(1.0, 0.9),
        fair=FairRuns(
            trials=(trial(even), trial(uneven), trial(even)), ended="finished", elapsed_s=1.0
        ),
    )
    assert found.change.verdict == "cannot_tell"
    assert found.advice == "cannot tell"
    assert "1.08 times as long" in found.sentence


def test_a_verdict_that_is_open_says_so_once_and_first():
    """Nothing differs: three ways of not knowing in one sentence read like an excuse."""
    said = verified(100, 100).sentence
    assert said.startswith("≈ cannot tell whether precision=bf16 helps: between ")
    assert "where a change below" in said
    assert said.endswith("; its numbers are as expected.")
    assert said.count("tell") == 1
    numbers = verified(100, 70, parity=Parity(verdict="cannot_tell", reason="because.")).sentence
    assert numbers.startswith("▲ precision=bf16 is faster")
    assert numbers.endswith(
        "its numbers could not be compared: compare the losses of a longer training before you "
        "keep it."
    )
