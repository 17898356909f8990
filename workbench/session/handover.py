"""Ranks that train in place of this process, step by step, and hand everything back."""

import pickle
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from workbench.errors import RankError, SettingError, TimeLimitError, WorkloadError
from workbench.parallel.carried import merged, put
from workbench.parallel.following import READY, all_ranks, follow
from workbench.parallel.job import Job, refuse_nested, running
from workbench.parallel.lockstep import Lockstep, wait_for
from workbench.parallel.placing import check_workload, place
from workbench.parallel.spread import random_states, set_random_states
from workbench.settings import Settings
from workbench.settings.parallel import MODES
from workbench.workload import Workload
from workbench.workload.capability import Offer
from workbench.workload.checks import check_reach
from workbench.workload.feed import Feed

WHAT = "a session"
START_S, STEP_S, BACK_S = 180.0, 300.0, 120.0
"""Ranks that take longer to start, for one step, or to hand back, are ended."""

_LOSING = (RankError, SettingError, TimeLimitError, WorkloadError)


class Team:
    """Ranks under one set of settings, from where this process stands now.

    They start from the weights, optimizer state, random states and place in the epoch of now. Each
    step is allowed one by one, so that all of them stop at the same boundary as a training of one
    process would. What they trained is written into the same objects by :meth:`hand_back`; until
    then this process holds everything as it was when they took over.

    Args:
        work: What is trained.
        settings: With ``parallel``.
        feed: Gives its place away.

    Raises:
        SettingError: The workload cannot be spread so, or this machine has too little for it.
        RankError: A rank failed while it started.
        TimeLimitError: They did not start in time.
    """

    def __init__(self, work: Workload, settings: Settings, feed: Feed) -> None:
        ranks = settings.ranks
        if ranks is None:
            raise AssertionError("only for settings that need ranks")
        refuse_nested(WHAT)
        check_reach(work, _alone(settings))
        placed = place(work, settings, ranks)
        check_workload(work, settings, ranks)
        self.effective: dict[str, Any]
        self.notes: list[str]
        self.lost: str | None
        self.device = torch.device(placed["device"])
        self.steps = 0
        self.rows: list[dict[str, float]] = []
        """The last step of each rank."""
        self._work, self._feed, self._mode = work, feed, ranks.mode
        self._undo = ExitStack()
        rest, self.lost = feed.lend()
        try:
            self._job: Job = self._undo.enter_context(
                running(
                    follow,
                    {
                        "work": work,
                        "settings": settings,
                        "placed": placed,
                        "random": random_states(),
                        "rest": rest,
                    },
                    world_size=placed["world_size"],
                    launcher=ranks.launcher or "local",
                    threads=placed["threads"],
                    what=WHAT,
                    ready=lambda folder: Lockstep.make(folder, placed["world_size"]),
                )
            )
            self._lockstep = Lockstep(self._job.folder, placed["world_size"])
            self._wait(self._ready.exists, START_S, "start")
            told = pickle.loads(self._ready.read_bytes())  # noqa: S301 - our own ranks
        except BaseException:
            self.close()
            raise
        spread = {"parallel": ranks.to_json(), "world_size": placed["world_size"]}
        self.effective = told["effective"] | spread | {"backend": placed["backend"]}
        self.notes = [
            *told["notes"],
            f"{placed['world_size']} ranks train in processes of their own, {placed['threads']} "
            "threads each; times are those of rank 0. Objects that a step of your own changes "
            "stay in them",
        ]

    @property
    def _ready(self) -> Path:
        return self._job.folder / READY

    def step(self) -> dict[str, float]:
        """Let all ranks make one step; what is known of it.

        Raises:
            RankError: A rank failed; what they trained is lost.
            TimeLimitError: It took too long.
        """
        self._lockstep.allow(self.steps + 1)
        self._wait(lambda: self._lockstep.done() > self.steps, STEP_S, "make a step")
        self.steps += 1
        self.rows = self._lockstep.rows()
        return all_ranks(self.rows, self._mode)

    def hand_back(self) -> None:
        """End the ranks, and write what they trained into the objects of this process.

        Raises:
            RankError: A rank failed; this process is as it was when they took over.
            TimeLimitError: It took too long.
        """
        self._lockstep.end()
        self._wait(lambda: self._job.is_over, BACK_S, "hand back", over=True)
        try:
            carried = merged(self._job.results())
        except Exception as error:
            raise self._told(error) from error
        put(self._work, carried)
        at = carried.place
        self._feed.take_back(at["rest"], at["epochs"], at["generators"])
        set_random_states(at["random"])

    def close(self) -> None:
        """End the ranks and all that they left; doing it twice is fine."""
        self._undo.close()

    def _wait(self, done: Any, limit_s: float, what: str, *, over: bool = False) -> None:
        until = time.monotonic() + limit_s

        def look() -> None:
            if self._job.is_over and not over and not done():
                try:
                    self._job.results()
                except Exception as error:
                    raise self._told(error) from error
                raise self._told(RankError("the ranks ended by themselves."))
            if time.monotonic() > until:
                raise self._told(
                    TimeLimitError(
                        f"the ranks did not {what} within {limit_s:g} s, and were ended. They "
                        f"were at:\n{self._job.whereabouts()}\n"
                    )
                )

        wait_for(done, look)

    def _told(self, error: Exception) -> Exception:
        """The error with what is lost by it, in its first lines."""
        if not self.steps or not isinstance(error, _LOSING):
            return error
        first, gap, rest = str(error).partition("\n\n")
        end = "" if first.rstrip().endswith(".") else "."
        return type(error)(
            f"{first.rstrip()}{end} The {self.steps} steps that the ranks trained are lost: "
            f"everything is as it was when they took over.{gap}{rest}"
        )


def rank_offers(work: Workload) -> Iterator[Offer]:
    """What each way to spread the work could do on this workload and machine."""
    for mode in MODES:
        settings = Settings(parallel=mode)  # type: ignore[arg-type]
        if settings.ranks is None:
            continue
        reason = None
        try:
            check_reach(work, Settings())
            place(work, settings, settings.ranks)
            check_workload(work, settings, settings.ranks)
        except SettingError as error:
            reason = str(error)
        yield Offer(
            field="parallel",
            values=(mode,),
            state="possible" if reason is None else "refused",
            reason=reason,
        )


def _alone(settings: Settings) -> Settings:
    """The settings of one rank by itself."""
    return replace(settings, parallel=None)
