"""Steps on batches at hand, and batches that nobody steps on, by a clock that only they move."""

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from workbench.recording import ceilings as module
from workbench.recording.ceilings import Before, Ceilings

MS = 1_000_000


class FakeLoop:
    """A loader that takes ``load_ms`` and a step that takes ``step_ms`` of a clock of its own."""

    def __init__(self, *, load_ms: Callable[[int], int], step_ms: int, epoch: int = 10**9) -> None:
        self.now = 0
        self.drawn: list[int] = []
        self.served: list[int] = []
        self.ended = self.rested = False
        self.load_ms, self.step_ms, self.epoch = load_ms, step_ms, epoch

    @property
    def epochs(self) -> int:
        return max(len(self.drawn) - 1, 0) // self.epoch

    def draw(self) -> torch.Tensor:
        number = len(self.drawn)
        self.now += self.load_ms(number) * MS
        self.drawn.append(number)
        return torch.full((4, 1), number)

    def serve(self, held: list[Any]) -> None:
        self.served.append(int(held.pop(0)[0]))
        self.now += self.step_ms * MS

    def rest_probes(self) -> None:
        self.rested = True

    def end_loader(self) -> None:
        self.ended = True


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ceilings]:
    def run(
        loop: FakeLoop,
        *,
        workers: int = 0,
        elapsed_s: float = 0,
        left_s: float | None = None,
        input_ms: int = 10,
        keeps_one: bool = False,
        prefetch: int = 2,
    ) -> Ceilings:
        monkeypatch.setattr(time, "monotonic_ns", lambda: loop.now)
        monkeypatch.setattr(time, "perf_counter_ns", lambda: loop.now)
        made = Ceilings(
            loop=loop,  # type: ignore[arg-type]
            device=None,
            loader={"workers": workers, "prefetch_factor": prefetch if workers else None},
            keeps_one=keeps_one,
        )
        before = Before(
            elapsed_ns=int(elapsed_s * 1e9),
            left_ns=None if left_s is None else left_s * 1e9,
            step_ns=[20 * MS] * 10,
            input_ns=[input_ms * MS] * 10,
        )
        made.measure(before, last=False)
        made.measure(before, last=True)
        return made

    return run


def test_both_ceilings_of_a_loop_that_loads_by_itself(measure: Callable[..., Ceilings]) -> None:
    """5 ms to load 4 samples, 20 ms to step: 200 batches and 800 samples a second."""
    found = measure(FakeLoop(load_ms=lambda _: 5, step_ms=20))
    alone = found.loader_alone()
    assert alone is not None
    assert set(found.replay_ns) == {20 * MS}
    assert alone["batches_per_s"] == pytest.approx(200)
    assert alone["samples_per_s"] == pytest.approx(800)
    assert alone["epochs"] == 0


def test_every_kept_batch_is_stepped_on_once(measure: Callable[..., Ceilings]) -> None:
    """What a step writes to its batch never meets that batch again."""
    loop = FakeLoop(load_ms=lambda _: 5, step_ms=20)
    measure(loop, elapsed_s=10)
    assert len(set(loop.served)) == len(loop.served) > 10


def test_without_workers_it_takes_turns_with_the_blocks_and_else_it_comes_last(
    measure: Callable[..., Ceilings],
) -> None:
    """Workers that fill their queue again would take processors from the replayed steps."""
    inside = FakeLoop(load_ms=lambda _: 5, step_ms=20)
    beside = FakeLoop(load_ms=lambda _: 5, step_ms=20)
    assert len(measure(inside).replay_ns) == 2 * 4 - 2  # of each part's 4 one is not counted
    assert len(measure(beside, workers=2).replay_ns) == 6 - 1
    assert beside.ended
    assert beside.rested


def test_batches_that_lay_ready_are_no_speed_of_the_loader(
    measure: Callable[..., Ceilings],
) -> None:
    """2 workers hold 4 batches ready; then one comes every 30 ms: 33 a second, not 66."""
    loop = FakeLoop(load_ms=lambda number: 0 if number < 4 else 30, step_ms=40)
    alone = measure(loop, workers=2, input_ms=0).loader_alone()
    assert alone is not None
    assert alone["batches_per_s"] == pytest.approx(1000 / 30)


def test_of_a_loader_that_every_step_waits_for_nothing_lies_ready(
    measure: Callable[..., Ceilings],
) -> None:
    loop = FakeLoop(load_ms=lambda _: 30, step_ms=10)
    measure(loop, workers=2, input_ms=10)
    assert len(loop.drawn) == 6


def test_it_takes_a_tenth_of_the_time_so_far(measure: Callable[..., Ceilings]) -> None:
    """After 4 s: 0.2 s to load and 0.2 s to step, and so in both parts at most twice that."""
    loop = FakeLoop(load_ms=lambda _: 10, step_ms=20)
    measure(loop, elapsed_s=4)
    assert loop.now / 1e9 <= 2 * 0.4 + 0.1


def test_a_long_epochs_start_is_left_out_and_a_short_ones_is_in_it(
    measure: Callable[..., Ceilings],
) -> None:
    """Each epoch begins with 100 ms. One of 8 batches of 10 ms takes 170 ms: 21 ms a batch."""

    def starting(length: int) -> Callable[[int], int]:
        return lambda number: 100 if number % length == 0 else 10

    long = measure(FakeLoop(load_ms=starting(30), step_ms=10, epoch=30), elapsed_s=20)
    short = measure(FakeLoop(load_ms=starting(2), step_ms=10, epoch=2), elapsed_s=20)
    for found, per_batch in ((long, 0.0), (short, 55.0)):
        alone = found.loader_alone()
        assert alone is not None
        assert (alone["epochs"] > 0) is bool(per_batch)
        if per_batch:
            assert 1000 / alone["batches_per_s"] == pytest.approx(per_batch, rel=0.15)


def test_too_little_time_left_is_said_and_nothing_is_measured(
    measure: Callable[..., Ceilings],
) -> None:
    loop = FakeLoop(load_ms=lambda _: 5, step_ms=20)
    found = measure(loop, left_s=0.1)
    assert loop.drawn == []
    assert found.loader_alone() is None
    assert "time_limit_s" in found.notes[0]


def test_an_error_at_the_very_end_costs_no_result(measure: Callable[..., Ceilings]) -> None:
    loop = FakeLoop(load_ms=lambda _: 5, step_ms=20)

    def serve(held: list[Any]) -> None:
        raise ValueError("sample 71 is damaged")

    loop.serve = serve  # type: ignore[method-assign]
    found = measure(loop, workers=1)
    assert "sample 71 is damaged" in found.notes[0]


def test_data_that_end_before_a_batch_is_set_aside_cost_no_result(
    measure: Callable[..., Ceilings],
) -> None:
    """One process loads: the draws before its own are six batches."""
    loop = FakeLoop(load_ms=lambda number: 5 if number < 6 else 1 // 0, step_ms=20)
    found = measure(loop, workers=1, keeps_one=True, prefetch=0)
    assert not found.spare
    assert not found.notes
    assert loop.ended
    assert found.loader_alone() is not None
    assert found.replay_ns


def test_kept_batches_leave_most_of_a_small_shared_memory_free() -> None:
    """16 MB free: a quarter holds four batches of 1 MB."""
    batch = torch.zeros(250_000)
    assert module._room(batch, shared=True, free=lambda: 16_000_000) == 4
    assert module._room(batch, shared=False) == module.KEPT_MOST
