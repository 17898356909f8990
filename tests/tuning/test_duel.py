"""When is enough measured of a change?"""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.tuning.loops import training
from tests.tuning.made import block, trial
from workbench.recording.progress import Progress
from workbench.settings import Settings
from workbench.tuning import duel
from workbench.tuning.candidates import Candidate, Shares, from_findings, is_new
from workbench.tuning.deciding import decided
from workbench.tuning.duel import Duel, Ring
from workbench.tuning.guard import Appetite, Room, too_much
from workbench.tuning.parity import Parity
from workbench.tuning.trial import FairRuns

CHANGE = Settings(precision="bf16")


def fought(
    monkeypatch: pytest.MonkeyPatch,
    base_ms: Callable[[int], float],
    with_ms: Callable[[int], float],
    **ends: Any,
) -> Duel:
    """A duel in which block n takes these times a step, slowly growing."""
    counted = [0]

    def measured(work: Any, settings: Sequence[Settings], *, blocks: int, **_: Any) -> FairRuns:
        first = counted[0]
        counted[0] += blocks
        sides = []
        for of, one in zip((base_ms, with_ms), settings, strict=True):
            made = [
                block([of(n) * (1 + 0.001 * step) for step in range(5)])
                for n in range(first, first + blocks)
            ]
            sides.append(trial(made, one))
        ended = ends.get("ended", "finished") if counted[0] >= ends.get("after", 0) else "finished"
        return FairRuns(trials=tuple(sides), ended=ended, elapsed_s=1.0)

    monkeypatch.setattr(duel, "fair_blocks", measured)
    work = training()
    ring = Ring(work=work, steps=5, bar=Progress(shown=False, title=""), warmed={})
    return ring.fight(Settings(), CHANGE, limit_s=60)


@pytest.mark.parametrize(
    ("with_ms", "ended", "blocks"),
    [
        (lambda n: 130.0, "dropped", 1),  # every step is slower than every step without
        (lambda n: 100.05 + 0.2 * (n - 0.5), "dropped", 2),  # two pairs: as long, or longer
        (lambda n: 70.0, "decided", 4),  # faster in each: the least that tells it
        (lambda n: 80.0 if n != 2 else 101.0, "decided", 8),  # one wild block: as many again
    ],
)
def test_a_duel_ends_when_it_is_decided_or_hopeless(
    monkeypatch: pytest.MonkeyPatch, with_ms: Callable[[int], float], ended: str, blocks: int
):
    found = fought(monkeypatch, lambda n: 100.0, with_ms)
    assert (found.ended, len(found.sides[1].blocks)) == (ended, blocks)


def test_what_is_faster_in_all_blocks_is_kept_with_its_interval(monkeypatch: pytest.MonkeyPatch):
    found = fought(monkeypatch, lambda n: 100.0, lambda n: 70.0)
    numbers = Parity(verdict="as_expected", reason="all differences are within rounding.")
    attempt = decided(Candidate(change=CHANGE, origin="WB301"), Settings(), found, numbers)
    assert attempt.kept
    assert attempt.ratio == pytest.approx(0.7, abs=0.01)
    assert attempt.low <= attempt.ratio <= attempt.high < 1
    assert attempt.reason.startswith("30.0 % (")


@pytest.mark.parametrize("verdict", ["differs", "diverges", "cannot_tell"])
def test_no_gain_is_kept_whose_numbers_do_not_hold(monkeypatch: pytest.MonkeyPatch, verdict: Any):
    found = fought(monkeypatch, lambda n: 100.0, lambda n: 10.0)
    for numbers in (Parity(verdict=verdict, reason="so it is."), None):
        attempt = decided(Candidate(change=CHANGE, origin="offer"), Settings(), found, numbers)
        assert attempt.decision == "reverted"


def test_four_pairs_at_the_time_limit_are_enough_and_fewer_are_not(
    monkeypatch: pytest.MonkeyPatch,
):
    enough = fought(monkeypatch, lambda n: 100.0, lambda n: 70.0, ended="time_limit", after=4)
    assert enough.ended == "decided"
    fewer = fought(monkeypatch, lambda n: 100.0, lambda n: 70.0, ended="time_limit", after=2)
    assert fewer.ended == "time_limit"
    attempt = decided(Candidate(change=CHANGE, origin="offer"), Settings(), fewer, None)
    assert attempt.decision == "reverted"


def test_findings_become_candidates_with_their_bounds():
    findings: list[dict[str, Any]] = [
        {
            "code": "WB101",
            "title": "a",
            "setting": {"workers": 2},
            "saving_ns": 40,
            "speedup": None,
        },
        {"code": "WB301", "title": "b", "setting": {"precision": "bf16"}, "saving_ns": 1}
        | {"speedup": 4.0},
        {"code": "WB902", "title": "c", "setting": None, "saving_ns": None, "speedup": None},
    ]
    made = list(from_findings(findings, 100.0, None))
    # 40 of 100 ns; a quarter of the time is left at least.
    assert [(one.origin, one.bound) for one in made] == [("WB101", 0.4), ("WB301", 0.75)]
    assert [one.origin for one in from_findings(findings, 100.0, ("workers",))] == ["WB101"]


def test_a_bound_follows_from_the_parts_of_a_step():
    shares = Shares(input=0.3, optimizer=0.02)
    assert shares.bound(Settings(workers=2), workers=0, on_cpu=True) == 0.3
    # Workers share the processors with the training: fewer may help beyond the wait.
    assert shares.bound(Settings(workers=1), workers=2, on_cpu=True) is None
    assert shares.bound(Settings(optimizer="fused"), workers=0, on_cpu=True) == 0.02
    assert shares.bound(Settings(precision="bf16"), workers=0, on_cpu=True) == 0.7
    assert shares.bound(Settings(batch_size=64), workers=0, on_cpu=True) is None


def test_what_is_in_force_already_is_no_candidate():
    effective = {"workers": 2, "precision": "fp32"}
    asked = Candidate(change=Settings(workers=2), origin="offer")
    assert not is_new(asked, Settings(), effective)
    assert is_new(Candidate(change=Settings(workers=1), origin="offer"), Settings(), effective)
    assert not is_new(asked, Settings(workers=2), effective)


def test_memory_is_estimated_from_what_the_loop_takes():
    effective = {"batch_size": 32, "workers": 0, "device": "cpu"}
    loop = Appetite(batch_bytes=1_000_000, grown_bytes=100_000_000)
    # Four times the batch: 300 MB more of what the loop grew by.
    four = Settings(batch_size=128)
    assert too_much(four, effective, loop, Room(host=400_000_000)) is None
    said = too_much(four, effective, loop, Room(host=200_000_000))
    assert said == "needs about 300 MB more of memory, of which 200 MB are free"
    # 8 workers × 4 batches of 1 MB wait in shared memory.
    queue = Settings(workers=8, prefetch_factor=4)
    assert "32.0 MB more of shared memory" in str(
        too_much(queue, effective, loop, Room(shared=20_000_000))
    )
    assert too_much(queue, effective, loop, Room()) is None  # not known is no reason
