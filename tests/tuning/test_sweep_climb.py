"""Which ways of loading a sweep tries and chooses, on rates that are computed, not measured.

A loader's batch costs ``batch`` ms in one process, a step without it ``step`` ms. With workers the
step takes the longest of step, batch ÷ workers, and the work of both ÷ processors.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from workbench.tuning.sweep.bench import alone_of
from workbench.tuning.sweep.bounds import (
    Alone,
    Machine,
    ceiling_ns,
    least_ns,
    most_workers,
    needed_workers,
)
from workbench.tuning.sweep.climb import Climb, Halt
from workbench.tuning.sweep.config import Allowed, Config
from workbench.tuning.sweep.pace import Measured, factor, intervals, noise_of
from workbench.tuning.sweep.stopwatch import Piece
from workbench.tuning.sweep.sweep import summed_up

MS = 1e6
JITTER = (1.005, 0.995)
"""Two blocks differ by 1 %, less than the least noise of 2 %."""


def alone(
    batch: float, step: float, *, cpu: float = 1.0, samples: int = 32, step_cpu: float = 1.0
) -> Alone:
    """A batch and a step of so many milliseconds, which use so much of a processor."""
    return Alone(
        step_ns=step * MS,
        batch_ns=batch * MS,
        step_low_ns=step * MS,
        batch_low_ns=batch * MS,
        step_cpu_ns=step * step_cpu * MS,
        batch_cpu_ns=batch * cpu * MS,
        samples=samples,
        batch_bytes=1_000_000,
    )


@dataclass
class Computed:
    """A bench on which blocks cost nothing, and that remembers what it was asked."""

    of: dict[bool, Alone]
    machine: Machine
    step_ms: Callable[[Config], float] | None = None
    startup_ms: float = 100.0
    waits: dict[int, float] = field(default_factory=dict)
    """Share of the step that waits for its batch, by workers."""
    jitter: tuple[float, float] = JITTER
    stop_after: int = 1_000
    room: int = 1_000
    """Workers that fit into memory."""
    measured: dict[Config, Measured] = field(default_factory=dict)
    blocks: int = 0

    def alone(self, config: Config) -> Alone:
        return self.of[config.batched]

    def measure(self, configs: Sequence[Config], blocks: int) -> None:
        for config in configs:
            if self.blocks >= self.stop_after:
                raise Halt("budget")
            before = self.measured.get(config, Measured())
            step = self._step_ns(config)
            new = tuple(step * self.jitter[n % 2] for n in range(blocks))
            self.measured[config] = Measured(
                block_ns=(*before.block_ns, *new),
                start_ns=(self.startup_ms * MS if config.workers else 0.0,),
                waits=tuple(self.waits[w] for w in [config.workers] if w in self.waits),
            )
            self.blocks += blocks

    def too_much(self, config: Config, alone: Alone) -> str | None:
        del alone
        return "needs more memory than is free" if config.workers > self.room else None

    def _step_ns(self, config: Config) -> float:
        if self.step_ms is not None:
            return self.step_ms(config) * MS
        return least_ns(config, self.of[config.batched], self.machine)


INSIDE = Config(0)


def climb(
    bench: Computed, as_it_is: Config = INSIDE, *, epoch: int | None = 10_000, **allowed: object
) -> Climb:
    given = {"workers": 64, **allowed}
    found = Climb(
        bench=bench,
        allowed=Allowed(as_it_is=as_it_is, **given),  # type: ignore[arg-type]
        machine=bench.machine,
        epoch=epoch,
    )
    found.go()
    return found


def bench(of: Alone, *, cpus: int = 8, on_cpu: bool = True, **rest: object) -> Computed:
    return Computed(of={False: of}, machine=Machine(usable_cpus=cpus, on_cpu=on_cpu), **rest)  # type: ignore[arg-type]


def sentence(found: Climb) -> str:
    return summed_up("loop", found, 1.0).sentence


def test_bounds_follow_from_batch_and_step_alone() -> None:
    """Batch 60, step 20 on 4 processors: 80 in turns; 30 with 2 workers; 20 from 4 on.

    The processors have (60 + 20) / 4 = 20 to do as well.
    """
    made, machine = alone(60, 20), Machine(usable_cpus=4, on_cpu=True)
    steps = [least_ns(Config(w, 2 if w else 0), made, machine) / MS for w in (0, 2, 4, 8)]
    assert steps == [80, 30, 20, 20]
    assert ceiling_ns(made, machine) == 20 * MS
    assert needed_workers(made) == 3
    device = Machine(usable_cpus=4, on_cpu=False)
    assert least_ns(Config(0), made, device) == 60 * MS  # the device computes meanwhile


def test_workers_that_wait_may_be_more_than_processors() -> None:
    """A worker that is busy a quarter of its time: four for each of two processors."""
    machine = Machine(usable_cpus=2, on_cpu=True)
    assert most_workers(alone(60, 20, cpu=1.0), machine) == 2
    assert most_workers(alone(60, 20, cpu=0.25), machine) == 8


def test_a_loader_that_keeps_up_is_not_swept() -> None:
    """0.2 ms of a step of 20 ms is 1 %, within the least noise: nothing is to be won."""
    ready = bench(alone(0.2, 20, samples=2))
    found = climb(ready)
    assert found.ended == "keeps_up"
    assert ready.blocks == 0
    assert found.chosen() == Config(0)
    assert "keeps up" in sentence(found)


def test_the_verdict_flips_where_the_cost_crosses_the_step() -> None:
    """Two workers make a batch in half its time: enough for 38 ms against 20, not for 44."""
    for batch, enough in ((38, True), (44, False)):
        found = climb(bench(alone(batch, 20), on_cpu=False), Config(2, 2))
        assert (found.ended == "keeps_up") is enough
        assert (found.chosen().workers == 2) is enough


def test_a_step_that_hardly_waits_needs_no_more_workers() -> None:
    """Handing over makes 20 ms 21, and yet only 1 % of it waits: nothing else is tried."""
    handed = bench(
        alone(60, 20, step_cpu=0.1),
        step_ms=lambda c: 21.0 if c.workers else 80.0,
        waits={0: 0.75, 3: 0.01},
    )
    assert climb(handed).chosen() == Config(3, 2)
    assert {c.workers for c in handed.measured} == {0, 3}


def test_workers_that_are_needed_come_first_and_suffice() -> None:
    """60 / 20 is 3 workers, of whom 2 would take 30 ms: two ways of loading are measured."""
    slow = bench(alone(60, 20, step_cpu=0.1))
    found = climb(slow)
    assert found.chosen() == Config(3, 2)
    assert set(slow.measured) == {Config(0), Config(3, 2, persistent=True)}
    assert "cannot be as fast" in found.left_out[Config(2, 2, persistent=True)]
    assert "hardly waits" in sentence(found)


def test_ties_go_to_fewer_workers() -> None:
    """61 / 20 needs 4 workers, but 3 take 20.3 ms, which is within 2 % of 20."""
    found = climb(bench(alone(61, 20, step_cpu=0.1)))
    assert found.chosen().workers == 3


def test_more_workers_than_processors_give_way_to_few() -> None:
    """On one processor nothing overlaps: batch 30 and step 20 are 50 ms with any worker.

    With 8 of them the processor changes hands more often: flat, then declining.
    """
    curve = {0: 50.0, 1: 51.0, 8: 58.0}
    crowded = bench(alone(30, 20), cpus=1, step_ms=lambda c: curve[c.workers])
    found = climb(crowded, Config(8, 2))
    assert found.chosen() == Config(0)
    assert {c.workers for c in crowded.measured} == {0, 1, 8}  # never 2 to 7
    assert max(c.workers for c in crowded.measured if c != Config(8, 2)) <= 1


def test_one_processor_that_loads_and_computes_leaves_nothing_to_win() -> None:
    found = climb(bench(alone(30, 20), cpus=1))
    assert found.ended == "keeps_up"
    assert "only processors" in sentence(found)


def test_rows_in_memory_are_fetched_at_once_and_get_no_workers() -> None:
    """128 rows of 20 µs are 2.6 ms, and 0.1 ms when fetched at once (pytorch #10260)."""
    both = {False: alone(2.6, 2, samples=128), True: alone(0.1, 2, samples=128)}
    table = Computed(of=both, machine=Machine(usable_cpus=8, on_cpu=True))
    found = climb(table, batched=True)
    assert found.chosen() == Config(0, batched=True)
    assert not any(config.workers for config in table.measured)
    assert str(summed_up("loop", found, 1.0).settings) == "batched_fetch=True"


def test_fetching_at_once_wins_a_tie_because_it_costs_nothing() -> None:
    """Alone, batches are there in a tenth of the time; the machine is too noisy to see it."""
    both = {False: alone(2.6, 20, samples=128), True: alone(0.26, 20, samples=128)}
    table = Computed(of=both, machine=Machine(usable_cpus=8, on_cpu=True), jitter=(1.3, 0.8))
    found = climb(table, batched=True)
    assert found.noise == 0.25
    assert found.chosen() == Config(0, batched=True)


def test_rows_that_cannot_be_fetched_at_once_get_no_workers_either() -> None:
    table = bench(alone(2.6, 2, samples=128))
    found = climb(table)
    assert found.chosen() == Config(0)
    assert table.blocks == 0
    assert "__getitems__" in sentence(found)


def test_workers_of_a_row_table_are_taken_away() -> None:
    """As in the report: 0 workers 1.39 s, 2 workers 4.71 s, at 390 batches."""
    curve = {0: 3.6, 2: 12.0}
    table = bench(alone(2.6, 1, samples=256), step_ms=lambda c: curve[c.workers])
    assert climb(table, Config(2, 2)).chosen() == Config(0)


def test_a_data_set_that_does_not_divide_itself_gets_one_worker() -> None:
    """Four workers look four times as fast, and give every sample four times."""
    found = climb(bench(alone(60, 20, step_cpu=0.1)), Config(4, 2), workers=1, duplicates=True)
    assert found.chosen().workers == 1
    assert max(c.workers for c in found.bench.measured if c != Config(4, 2)) == 1
    assert "every sample comes 4 times" in sentence(found)


def test_what_does_not_fit_into_memory_is_not_tried() -> None:
    """Room for two workers, where three are needed: one is half of them, then two."""
    full = bench(alone(60, 20, step_cpu=0.1), room=2)
    found = climb(full)
    assert max(c.workers for c in full.measured) <= 2
    assert any("memory" in why for why in found.left_out.values())


def test_a_deeper_queue_where_batches_are_uneven() -> None:
    """Two workers suffice on the whole (15 < 20), and yet the loop waits with a short queue."""
    steps = {0: 50.0, 2: 26.0, 4: 20.1, 8: 20.0}
    uneven = bench(alone(30, 20), cpus=2, on_cpu=False, step_ms=lambda c: steps[c.prefetch])
    found = climb(uneven)
    assert found.chosen().prefetch == 4


def test_a_deeper_queue_is_not_tried_where_workers_are_too_slow() -> None:
    """80 ms in two workers is 40 ms, whatever waits in the queue."""
    slow = bench(alone(80, 20), cpus=2, on_cpu=False)
    found = climb(slow)
    assert {c.prefetch for c in slow.measured} == {0, 2}
    assert found.chosen().workers == 2


@pytest.mark.parametrize(("epoch", "kept"), [(10, True), (10_000, False), (None, False)])
def test_workers_are_kept_where_starting_them_costs(epoch: int | None, kept: bool) -> None:
    """400 ms over 10 batches of 20 ms triple the step; over 10 000 they are 0.2 %."""
    found = climb(bench(alone(60, 20, step_cpu=0.1), startup_ms=400), epoch=epoch)
    assert found.chosen() == Config(3, 2, persistent=kept)


def test_starting_workers_again_may_cost_more_than_it_saves() -> None:
    """Epochs of 5 batches: 500 ms of start are 100 a batch where workers cannot be kept.

    Loading in the loop's own process takes 80.
    """
    found = climb(bench(alone(60, 20, step_cpu=0.1), startup_ms=500), epoch=5, persistent=False)
    assert found.chosen() == Config(0)


def test_pinning_is_tried_on_devices_and_left_where_it_costs() -> None:
    for pinned_ms, pin in ((15.0, True), (24.0, False)):
        device = bench(
            alone(60, 20),
            on_cpu=False,
            step_ms=lambda c, ms=pinned_ms: ms if c.pin else 80.0 if not c.workers else 20.0,
        )
        assert climb(device, pin=True).chosen().pin is pin


def test_what_was_measured_decides_when_time_is_over() -> None:
    """After one round of two ways of loading no further block starts."""
    hurried = bench(alone(61, 20, step_cpu=0.1), stop_after=4)
    found = climb(hurried)
    assert found.ended == "budget"
    assert found.chosen().workers == 4
    assert "budget was over" in sentence(found)


def test_a_doubtful_gain_is_measured_once_more() -> None:
    """Steps of 80 and 60 ms in blocks that differ by 40 %: four blocks each instead of two."""
    noisy = bench(
        alone(60, 20, step_cpu=0.1),
        step_ms=lambda c: 60.0 if c.workers else 80.0,
        jitter=(1.2, 0.85),
        waits={3: 0.01},
    )
    climb(noisy)
    assert len(noisy.measured[Config(0)].block_ns) >= 4


def test_waits_for_processors_of_others_are_no_part_of_a_batch() -> None:
    """Of 50 ms, 30 without a processor: 20 ms, all of them computed."""
    assert Piece(50, 20, 30).undisturbed(on=True) == (20, 20)
    assert Piece(50, 20, 30).undisturbed(on=False) == (50, 20)  # behind a device's work
    found = alone_of([(*Piece(50, 20, 30).undisturbed(on=True), 10, 10)] * 4, 8, None)
    assert found.processors_each == 1.0
    assert most_workers(found, Machine(usable_cpus=2, on_cpu=True)) == 2  # 5 by the wall clock


def test_noise_is_what_blocks_of_the_same_loader_differ_by() -> None:
    """Pairs that differ by 10 %: two blocks of deviation σ differ by √2 σ."""
    pairs = [Measured(block_ns=(100.0, 110.0)), Measured(block_ns=(50.0, 55.0))]
    assert noise_of(pairs) == pytest.approx(0.10)
    assert noise_of([Measured(block_ns=(100.0,))]) == 0.02  # nothing was repeated
    assert noise_of([Measured(block_ns=(1.0, 9.0))]) == 0.25  # no tie is wider


def test_an_interval_shares_what_all_loaders_tell_of_the_noise() -> None:
    """With 2 degrees of freedom Student's t is 4.303; the deviation of a pair is log 1.1 / √2."""
    spread = intervals([Measured(block_ns=(100.0, 110.0)), Measured(block_ns=(50.0, 55.0))])
    assert spread[0] == pytest.approx(0.0953102 / 2**0.5, rel=1e-5)
    assert spread[1] == 2
    assert factor(*spread, 2) == pytest.approx(2.718281828 ** (4.3027 * 0.0953102 / 2), rel=1e-4)
    assert factor(0.0, 0, 2) is None


def test_settings_hold_only_what_differs() -> None:
    as_it_is = Config(2, 2)
    assert str(Config(2, 4).settings(as_it_is)) == "prefetch_factor=4"
    assert Config(2, 2).settings(as_it_is).changes() == {}
    assert Config(0).settings(as_it_is).changes() == {"workers": 0}
    assert Config(3, 2, persistent=True).settings(Config(0)).changes() == {
        "workers": 3,
        "persistent_workers": True,
    }
