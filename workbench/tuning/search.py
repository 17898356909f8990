"""Walk the loop: worst finding first, keep what helps, look again, until nothing can help."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from workbench.errors import TimeLimitError, WorkbenchError
from workbench.settings import Settings
from workbench.statistics.change import LEAST_BLOCKS
from workbench.tuning.attempt import Attempt, joined, why_nothing
from workbench.tuning.candidates import Candidate, Shares, from_findings, from_offers, is_new
from workbench.tuning.deciding import decided, refused, unfinished
from workbench.tuning.duel import A, B, Duel, Ring
from workbench.tuning.guard import Appetite, room, too_much
from workbench.tuning.journal import Journal
from workbench.tuning.loading import attempts_of, swept
from workbench.tuning.look import diagnosis, first_look
from workbench.tuning.numbers import parity
from workbench.tuning.parity import Parity
from workbench.tuning.sweep import LoaderSweep
from workbench.tuning.telling import BestSoFar, kept_text, told
from workbench.units import share_text, spread_text, time_text

if TYPE_CHECKING:
    from workbench.workload import Workload

Ended = Literal["nothing left", "budget", "interrupted"]

BLOCK_SHARE = 1 / 150
"""Of the budget, what a block is planned to take."""
BLOCK_S = (0.2, 2.0)
"""A block takes at least and at most so long, as far as its steps allow."""
STEPS = (4, 20)
PIECE_SHARE, PIECE_LEAST_S = 1 / 3, 30.0
"""Nothing takes more of the budget than this, hung steps included, or so many seconds; only a
compilation and ranks, which take their time to start, may take what is left."""
COMPILING_S = 20.0
"""With less left, nothing is compiled any more: it could not come to its blocks."""
TOO_LATE = "too little of the budget is left to compile and to measure it"
SHRUNK = 0.75
"""A change that did not help is tried again when steps have become so much shorter: its share of
them has grown."""
PROFILES = 4
"""With less left than so many profiles take, there is no further one."""


class OutOfTime(Exception):  # noqa: N818 - a signal within this room, never shown
    """The budget is spent."""


@dataclass(kw_only=True)
class Search:
    """What is known so far; everything in it follows from the journal."""

    work: "Workload"
    journal: Journal
    bar: BestSoFar
    budget_s: float
    only: tuple[str, ...] | None = None
    loader_only: bool = False
    """Sweep the loader, and nothing else."""
    best: Settings = field(default_factory=Settings)
    attempts: list[Attempt] = field(default_factory=list)
    history: list[str] = field(default_factory=list)
    look: dict[str, Any] = field(default_factory=dict)
    overall: dict[str, Any] | None = None
    sweep: LoaderSweep | None = None
    ended: Ended = "nothing left"

    def __post_init__(self) -> None:
        self._until = time.monotonic() + self.budget_s
        self._ring = Ring(work=self.work, steps=STEPS[0], bar=self.bar, warmed={})
        self._effective: dict[str, Any] = {}
        self._shares = Shares()
        self._step_ns: float | None = None
        self._tried: dict[Settings, float | None] = {}
        self._profile_s = 0.0
        self._appetite = Appetite()
        self._short = False

    def go(self) -> None:
        """Search until nothing can help, the budget is spent, or somebody interrupts."""
        try:
            self._begin()
            if self.loader_only:
                self._sweep()
            while not self.loader_only and self._better():
                pass
            self._sum_up()
            if self._short:
                self.ended = "budget"
        except KeyboardInterrupt:
            self.ended = "interrupted"
        except OutOfTime:
            self.ended = "budget"
        if self.journal.lost is not None:
            self.history.append(
                f"Not all of this could be written to {self.journal.folder} ({self.journal.lost}): "
                "going on with that folder would measure it again."
            )
        self.history.append(self._end())

    def _begin(self) -> None:
        limit = self._left_s()
        look = self.journal.once(
            lambda: first_look(self.work, self.bar, self._ring.warmed, limit), "as it is"
        )
        self.look = look
        self._step_ns, self._effective = look["step_ns"], dict(look["effective"])
        self._shares = Shares(input=look["input_share"])
        self._appetite = Appetite(
            batch_bytes=look["batch_bytes"],
            grown_bytes=look["grown_bytes"],
            device_bytes=look["device_bytes"],
        )
        block_s = min(max(self.budget_s * BLOCK_SHARE, BLOCK_S[0]), BLOCK_S[1])
        step_s = (self._step_ns or 1e9) / 1e9
        self._ring.steps = min(max(int(block_s / step_s), STEPS[0]), STEPS[1])
        wait = look["input_share"]
        waits = "" if wait is None else f", of which {share_text(wait)} waits for data"
        self.history.append(
            f"As it is, a step takes {time_text(self._step_ns)}{waits}; the loop differs from "
            f"itself by {spread_text(look['noise'])}."
        )

    def _sweep(self) -> None:
        self.bar.stage("sweeping the loader")
        self.sweep = sweep = swept(self.work, self.journal, self.bar, self._left_s())
        self.attempts += attempts_of(self.work, sweep)
        self.best = sweep.settings
        self.history += [sweep.sentence, *(f"Note: {note}." for note in sweep.notes)]
        if sweep.ended == "interrupted":
            raise KeyboardInterrupt
        if sweep.ended == "budget":
            raise OutOfTime

    def _better(self) -> bool:
        """Look where time goes, and try what may help, until something was kept."""
        return any(self._tries(candidate) for candidate in self._candidates())

    def _candidates(self) -> Iterator[Candidate]:
        """Worst finding first, then what no finding names."""
        findings = self._diagnosed()
        yield from from_findings(findings, self._step_ns, self.only)
        yield from from_offers(self.work, self._effective, self._shares, self.only)

    def _diagnosed(self) -> list[dict[str, Any]]:
        asked = self.best.to_json()
        found = self.journal.get("profile", settings=asked)
        if found is None:
            if self._left_s() < PROFILES * self._profile_s:
                found = {"findings": [], "optimizer_share": None, "note": "too little time is left"}
            else:
                found = self._profiled()
            self.journal.add(found, "profile", settings=asked)
        self._shares = Shares(input=self._shares.input, optimizer=found["optimizer_share"])
        named = [each for each in found["findings"] if each["setting"]]
        if found.get("note"):
            self.history.append(f"Not profiled: {found['note']}.")
        elif found["findings"]:
            worst = found["findings"][0]
            more = "" if named else "; no finding has a setting"
            self.history.append(f"Profiled: worst is {worst['code']}, {worst['title']}{more}")
        else:
            self.history.append("Profiled: no finding.")
        return named

    def _profiled(self) -> dict[str, Any]:
        began = time.monotonic()
        self.bar.stage("profiling")
        limit = min(self._left_s() / 2, self._piece_s())
        try:
            return diagnosis(
                self.work, self.best, folder=self.journal.folder / "profiles", limit_s=limit
            )
        except Exception as error:  # noqa: BLE001 - of the user's code, and told
            if isinstance(error, TimeLimitError) and self._left_s() <= 0:
                raise OutOfTime from None
            kind = "" if isinstance(error, WorkbenchError) else f"{type(error).__name__}: "
            text = f"{kind}{' '.join(str(error).split())[:200]}"
            return {"findings": [], "optimizer_share": None, "note": text}
        finally:
            self._profile_s = time.monotonic() - began

    def _tries(self, candidate: Candidate) -> bool:
        """Whether the change was kept."""
        change = candidate.change
        if not is_new(candidate, self.best, self._effective) or self._known(candidate):
            return False
        attempt = self._without_trial(candidate)
        if attempt is None:
            known = self.journal.get("trial", change=change.to_json(), base=self.best.to_json())
            attempt = self._fought(candidate) if known is None else Attempt.from_json(known)
        self._tried[change] = self._step_ns
        self.attempts.append(attempt)
        self.history.append(told(attempt, candidate.about))
        if attempt.kept:
            self._keep(attempt)
        return attempt.kept

    def _known(self, candidate: Candidate) -> bool:
        """Whether a change was refused, or did not help, and nothing has changed since."""
        if candidate.change not in self._tried or candidate.refused is not None:
            return candidate.change in self._tried
        then, now = self._tried[candidate.change], self._step_ns
        return then is None or now is None or now > SHRUNK * then

    def _without_trial(self, candidate: Candidate) -> Attempt | None:
        """What is refused, or could not gain anything, without measuring."""
        if candidate.refused is not None:
            return refused(candidate, self.best, candidate.refused, outcome="refused")
        noise = self.look["noise"]
        if candidate.bound is not None and candidate.bound < noise:
            why = (
                f"it could gain at most {share_text(candidate.bound)}, and the loop differs from "
                f"itself by {spread_text(noise)}"
            )
            return refused(candidate, self.best, why, outcome="not_measured")
        return None

    def _fought(self, candidate: Candidate) -> Attempt:
        change, base = candidate.change, self.best
        asked = {"change": change.to_json(), "base": base.to_json()}
        why = too_much(
            change, self._effective, self._appetite, room(str(self._effective.get("device", "cpu")))
        )
        if why is not None:
            attempt = refused(candidate, base, why, outcome="refused")
            self.journal.add(attempt.to_json(), "trial", **asked)
            return attempt
        if change.compile and self._left_s() < COMPILING_S:
            self._short = True
            return refused(candidate, base, TOO_LATE, outcome="not_measured")
        self._check_time()
        self.bar.trying = f"{change}"
        try:
            late = change.compile or change.ranks is not None
            limit = self._left_s() if late else self._piece_s()
            duel = self._ring.fight(base, change, limit_s=limit)
            attempt = self._decided(candidate, duel)
        except (KeyboardInterrupt, OutOfTime) as stop:
            self.attempts.append(unfinished(candidate, base, stop))
            raise
        finally:
            self.bar.trying = ""
        self.journal.add(attempt.to_json(), "trial", **asked)
        return attempt

    def _decided(self, candidate: Candidate, duel: Duel) -> Attempt:
        if duel.ended == "interrupted":
            raise KeyboardInterrupt
        if duel.ended == "time_limit" and self._left_s() <= 1:
            raise OutOfTime
        numbers = None
        if duel.ended == "decided" and duel.change.verdict == "faster":
            numbers = self._parity(joined(self.best, candidate.change))
        return decided(candidate, self.best, duel, numbers)

    def _parity(self, settings: Settings) -> Parity:
        """Against the loop as it was given, so that small differences cannot add up unseen."""
        limit = self._piece_s()
        try:
            return parity(self.work, settings, time_limit_s=limit, progress=self.bar)
        except TimeLimitError as error:
            if self._left_s() <= 1:
                raise OutOfTime from None
            return Parity(verdict="cannot_tell", reason=str(error))
        except Exception as error:  # noqa: BLE001 - of the user's code, and told
            text = " ".join(str(error).split())[:200]
            return Parity(verdict="cannot_tell", reason=f"{type(error).__name__}: {text}")

    def _keep(self, attempt: Attempt) -> None:
        self.best = attempt.settings
        self._step_ns = attempt.step_ns or self._step_ns
        facts = attempt.facts
        self._effective |= facts.get("effective", {})
        if facts.get("input_share") is not None:
            self._shares = Shares(input=facts["input_share"])
        self.bar.best = kept_text(self.attempts)

    def _sum_up(self) -> None:
        """All that was kept against the loop as it was given, in one measurement."""
        kept = [attempt for attempt in self.attempts if attempt.kept]
        if len(kept) < 2:
            return
        asked = self.best.to_json()
        found = self.journal.get("together", settings=asked)
        if found is None:
            self._check_time(pairs=LEAST_BLOCKS)
            self.bar.trying = "all together"
            duel = self._ring.fight(Settings(), self.best, limit_s=self._piece_s())
            self.bar.trying = ""
            if duel.ended == "interrupted":
                raise KeyboardInterrupt
            if duel.ended in {"time_limit", "failed"}:
                raise OutOfTime
            change = duel.change
            found = {
                "verdict": change.verdict,
                "ratio": change.ratio,
                "low": change.low,
                "high": change.high,
                "per": duel.runs.per(A, B),
            }
            self.journal.add(found, "together", settings=asked)
        self.overall = found
        if found["verdict"] != "faster":
            self.history.append(
                "Measured together, the kept settings show no gain beyond noise: all are reverted."
            )
            self.best = Settings()

    def _end(self) -> str:
        words: Mapping[str, str] = {
            "nothing left": "nothing is left that could gain more than the noise",
            "budget": "the budget is spent",
            "interrupted": "it was interrupted",
        }
        best = str(self.best) if self.best.changes() else f"as it is; {why_nothing(self.attempts)}"
        return f"End: {words[self.ended]}. Best: {best}."

    def _left_s(self) -> float:
        return self._until - time.monotonic()

    def _piece_s(self) -> float:
        """What one piece may take."""
        most = max(self.budget_s * PIECE_SHARE, PIECE_LEAST_S)
        return max(min(self._left_s(), most), 0.1)

    def _check_time(self, pairs: int = 1) -> None:
        """End before a trial that could not come to its end."""
        step_s = (self._step_ns or 0.0) / 1e9
        least = 2 * pairs * (self._ring.steps + 1) * step_s
        if self._left_s() < least:
            raise OutOfTime
