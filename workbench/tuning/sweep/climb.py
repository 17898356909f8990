"""Which ways of loading are tried, in which order, and when enough is known."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from workbench.recording.ceilings import READY
from workbench.tuning.sweep.bounds import (
    Alone,
    Machine,
    ceiling_ns,
    least_ns,
    most_workers,
    needed_workers,
)
from workbench.tuning.sweep.config import Allowed, Config
from workbench.tuning.sweep.pace import LEAST_NOISE, Measured, factor, intervals, noise_of

Ended = Literal["finished", "keeps_up", "fixed", "budget", "interrupted", "failed"]

BLOCKS = 2
"""Of a way of loading in a round: the least that repeats something."""
MOST_BLOCKS = 4
MOST_NEAR = 3
DOUBT = 2.0
"""Ways of loading within so many times the noise of the fastest are measured once more."""
MOST_ALONE = 0.05
"""Where a loader waits for more of its step, it is swept, however noisy the machine."""
SINGLY = 4
"""Up to so many workers each number is tried on the way down, beyond it halves."""


class Halt(Exception):  # noqa: N818 - a signal within this room, never shown
    """No more trials: ``args[0]`` says how it ended."""

    @property
    def ended(self) -> Ended:
        """Why."""
        found: Ended = self.args[0]
        return found


class Bench(Protocol):
    """Measures; a real one runs the loop, one for tests computes."""

    measured: dict[Config, Measured]

    def alone(self, config: Config) -> Alone:
        """The loop in its own process."""

    def measure(self, configs: Sequence[Config], blocks: int) -> None:
        """So many more blocks of each, in turns; raises ``Halt`` where no more may follow."""

    def too_much(self, config: Config, alone: Alone) -> str | None:
        """Why it would not fit into memory."""


@dataclass(kw_only=True)
class Climb:
    """A search over ways of loading; what is known grows in its fields."""

    bench: Bench
    allowed: Allowed
    machine: Machine
    epoch: int | None = None
    """Batches of an epoch, where they can be counted."""
    alones: dict[bool, Alone] = field(default_factory=dict)
    """By whether whole batches are fetched at once."""
    left_out: dict[Config, str] = field(default_factory=dict)
    """What was not tried, and why."""
    ended: Ended = "finished"
    cheap_rows: bool = False
    fetch_at_once: bool = False
    """Whether batches are made sooner when they are fetched whole."""

    def go(self) -> None:
        """Try what may help until nothing can."""
        try:
            self._go()
        except Halt as halt:
            self.ended = halt.ended

    @property
    def as_it_is(self) -> Config:
        """The loader as it is."""
        return self.allowed.as_it_is

    @property
    def noise(self) -> float:
        """A/A difference of this machine now, as a share."""
        return noise_of(self.bench.measured.values())

    @property
    def measured(self) -> Mapping[Config, Measured]:
        """What was measured to its end."""
        return {c: m for c, m in self.bench.measured.items() if m.step_ns is not None}

    @property
    def most(self) -> int:
        """Workers that can be of use and may be started."""
        if self.cheap_rows:
            return 0
        return min(self.allowed.workers, most_workers(self.alone(self.as_it_is), self.machine))

    def pace_ns(self, config: Config) -> float:
        """A step with its part of what every epoch costs."""
        return self.reckoned_ns(config, self.bench.measured[config])

    def reckoned_ns(self, config: Config, found: Measured) -> float:
        """The same for what differs from a trial only in keeping workers between epochs."""
        return found.amortised_ns(self.epoch, self._each_epoch_ns(config, found)) or float("inf")

    def _each_epoch_ns(self, config: Config, found: Measured) -> float:
        """Workers that start again, or a queue that fills again."""
        if config.workers == 0:
            return 0.0
        if not config.persistent:
            return found.startup_ns
        return min(found.startup_ns, self.alone(config).batch_ns)

    def alone(self, config: Config) -> Alone:
        """Batch and step by themselves, with the fetch of ``config``."""
        return self.alones.get(config.batched) or self.alones[self.as_it_is.batched]

    def _least(self, config: Config) -> float:
        return least_ns(config, self.alone(config), self.machine)

    def _go(self) -> None:
        own = self.as_it_is.with_workers(0, persistent=False)
        self.alones[own.batched] = first = self.bench.alone(own)
        self.fetch_at_once = own.batched
        self.cheap_rows = first.cheap_rows
        if self._keeps_up_inside(first):
            self.ended = "keeps_up"
            return
        base = self._fetched(own)
        if self.as_it_is.workers:
            self._try([self.as_it_is])
            useful = self.as_it_is.workers <= self.most
            if useful and not self.allowed.duplicates and self.reached(self.as_it_is):
                self.ended = "keeps_up"
                return
        self._climb(base)
        self._deepen()
        self._pin()
        self._settle()

    def _keeps_up_inside(self, alone: Alone) -> bool:
        """Whether a loop that loads for itself hardly waits, or nobody could load beside it."""
        if self.as_it_is.workers:
            return False
        whole, floor = alone.step_ns + alone.batch_ns, alone.step_ns
        if not self.allowed.batched:
            floor = ceiling_ns(alone, self.machine) if self.allowed.workers else whole
        return whole <= floor * (1 + min(max(LEAST_NOISE, alone.noise), MOST_ALONE))

    def _fetched(self, own: Config) -> Config:
        """With whole batches at once, where that makes them sooner."""
        if not self.allowed.batched or own.batched:
            return own
        batched = own._replace(batched=True)
        found = self.bench.alone(batched)
        self.alones[True] = found
        before = self.alones[False].batch_ns
        if found.batch_ns < before * (1 - noise_of(())):
            self.fetch_at_once = True
            return batched
        self.left_out[batched] = "fetching whole batches at once does not make them sooner"
        return own

    def _climb(self, base: Config) -> None:
        """The workers that are needed first, then more while they help, then fewer."""
        first = self._fitting(base, min(needed_workers(self.alone(base)), self.most))
        start = [self.as_it_is] if not self.as_it_is.workers else []
        inside = base if self._may_win(base) or first == 0 else None
        near = [self._workers(base, first)] if first else []
        round_ = dict.fromkeys([*start, *([inside] if inside else []), *near])
        if set(round_) == {self.as_it_is}:
            return
        self._try(round_)
        self._up(base, first)
        self._down(base)

    def _fitting(self, base: Config, count: int) -> int:
        """Half as many workers until they fit into memory."""
        while count and not self._fits(self._workers(base, count)):
            count //= 2
        return count

    def _workers(self, base: Config, count: int) -> Config:
        """So many workers, kept between epochs; what only differs in that is what is there."""
        wanted = base.with_workers(count, persistent=self.allowed.persistent)
        known = self.bench.measured.get(self.as_it_is)
        alike = wanted._replace(persistent=self.as_it_is.persistent) == self.as_it_is
        return self.as_it_is if alike and known and not known.whole_epochs else wanted

    def _up(self, base: Config, count: int) -> None:
        while 0 < count < self.most and self._known(self._workers(base, count)):
            fastest = self.fastest()
            if fastest is None or self.reached(fastest):
                return
            before = self.pace_ns(self._workers(base, count))
            more = self._workers(base, min(self.most, max(2 * count, count + 1)))
            if not self._may_win(more):
                return
            self._try([self._workers(base, count), more])
            if not self._known(more) or self.pace_ns(more) > before * (1 - self.noise):
                return
            count = more.workers

    def _down(self, base: Config) -> None:
        """Fewer workers, while they may be as fast."""
        fastest = self.fastest()
        count = 0 if fastest is None else fastest.workers
        while fastest is not None and count:
            count = min(count - 1 if count <= SINGLY else count // 2, self.most)
            fewer = self._workers(base, count)
            if self._known(fewer):
                continue
            if self._least(fewer) > self.pace_ns(fastest) * (1 + self.noise):
                self.left_out[fewer] = "cannot be as fast: the loader alone is slower"
                return
            self._try([fastest, fewer])
            if not self._ties(fewer, fastest):
                return

    def _deepen(self) -> None:
        """A deeper queue, where workers are fast enough on the whole and yet waited for."""
        best = self.choice()
        if best is None or not best.workers or self.reached(best):
            return
        for prefetch in self.allowed.prefetch:
            deeper = best._replace(prefetch=prefetch)
            if prefetch <= best.prefetch or self._known(deeper):
                continue
            if self._least(best) > self.pace_ns(best) * (1 - self.noise):
                self.left_out[deeper] = "a deeper queue makes no batch sooner"
                return
            self._try([best, deeper])
            if not self._known(deeper) or self._ties(best, deeper):
                return
            best = deeper

    def _pin(self) -> None:
        best = self.choice()
        if self.allowed.pin and best is not None:
            self._try([best, best._replace(pin=not best.pin)])

    def _settle(self) -> None:
        """Once more those between which two blocks do not decide."""
        fastest = self.fastest()
        if fastest is None:
            return
        if self._doubtful(fastest):
            self.bench.measure([self.as_it_is, fastest], BLOCKS)
        limit = self.pace_ns(fastest) * (1 + DOUBT * self.noise)
        near = sorted(c for c in self.measured if self._eligible(c) and self.pace_ns(c) <= limit)
        near = list(dict.fromkeys((fastest, *near)))[:MOST_NEAR]
        fewest = min(len(self.measured[c].block_ns) for c in near)
        if len(near) > 1 and fewest < MOST_BLOCKS:
            self.bench.measure(near, BLOCKS)

    def _doubtful(self, fastest: Config) -> bool:
        """Whether nobody can tell yet that it is faster than the loop as it is."""
        if fastest == self.as_it_is or not self._known(self.as_it_is):
            return False
        blocks = min(len(self.measured[c].block_ns) for c in (fastest, self.as_it_is))
        apart = factor(*intervals(self.measured.values()), blocks / 2)
        gain = self.pace_ns(self.as_it_is) / self.pace_ns(fastest)
        return blocks < MOST_BLOCKS and apart is not None and gain < apart

    def _try(self, configs: Iterable[Config]) -> None:
        """Measure in one round what is new and fits, beside what it is held against."""
        asked = [config for config in dict.fromkeys(configs) if self._fits(config)]
        if any(config not in self.bench.measured for config in asked):
            self.bench.measure(asked, BLOCKS)

    def _fits(self, config: Config) -> bool:
        if config == self.as_it_is:
            return True
        why = self.bench.too_much(config, self.alone(config))
        if why is not None:
            self.left_out[config] = why
        return why is None

    def _known(self, config: Config) -> bool:
        return config in self.measured

    def _may_win(self, config: Config) -> bool:
        """Whether its bound leaves room for a gain over the fastest so far."""
        fastest = self.fastest()
        if fastest is None:
            alone = self.alone(config)
            best = ceiling_ns(alone, self.machine)
            if self.most and config.workers == 0:
                return self._least(config) <= best * (1 + self.noise)
            return True
        if self._least(config) < self.pace_ns(fastest) * (1 - self.noise):
            return True
        self.left_out[config] = "cannot be faster: batch and step alone take as long"
        return False

    def reached(self, config: Config) -> bool:
        """Whether nothing that loads could make the step shorter beyond noise.

        Handing batches over takes a little of every step, which no number of workers takes away:
        a step that finds its batch ready is as short as a loader makes it.
        """
        if not self._known(config):
            return False
        noise, pace, found = self.noise, self.pace_ns(config), self.bench.measured[config]
        if pace <= ceiling_ns(self.alone(config), self.machine) * (1 + noise):
            return True
        steady = pace <= (found.step_ns or 0.0) * (1 + noise)  # starting again is no part of it
        return steady and found.wait is not None and found.wait <= max(noise, READY)

    def _ties(self, config: Config, fastest: Config) -> bool:
        return self._known(config) and self.pace_ns(config) <= self.pace_ns(fastest) * (
            1 + self.noise
        )

    def fastest(self) -> Config | None:
        """Of those that may be chosen."""
        eligible = [c for c in self.measured if self._eligible(c)]
        return min(eligible, key=self.pace_ns, default=None)

    def choice(self) -> Config | None:
        """The fewest workers and the shortest queue of all that tie with the fastest."""
        fastest = self.fastest()
        if fastest is None:
            return None
        ties = [c for c in self.measured if self._eligible(c) and self._ties(c, fastest)]
        return min(ties, key=self._cost)

    def _cost(self, config: Config) -> tuple[Config, ...]:
        """Fewer and less first; whole batches at once, where they are sooner, cost nothing."""
        return (config._replace(batched=config.batched != self.fetch_at_once),)

    def chosen(self) -> Config:
        """The choice, with workers kept between epochs only where starting them costs."""
        found = self.choice() or self.as_it_is
        if not found.workers or (found.persistent and self.as_it_is.persistent):
            return found
        if self.measured[found].whole_epochs:
            return found
        return found._replace(persistent=self._worth_keeping(found))

    def _worth_keeping(self, config: Config) -> bool:
        if not self.allowed.persistent or not self.epoch:
            return self.as_it_is.persistent
        found = self.measured[config]
        kept = found.amortised_ns(self.epoch, self.alone(config).batch_ns)
        anew = found.amortised_ns(self.epoch, found.startup_ns)
        return bool(kept and anew and anew > kept * (1 + self.noise))

    def _eligible(self, config: Config) -> bool:
        return not (self.allowed.duplicates and config == self.as_it_is)
