"""What other threads want of a training; it is taken up between two of its steps."""

import time
from collections import deque
from dataclasses import dataclass

from workbench.session.board import Board
from workbench.session.burst import Burst
from workbench.session.trial import Trial
from workbench.settings import Settings

UNDOS_KEPT = 1000
BURSTS_KEPT = 100
"""Of those that are over; their Runs stay on disk."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Settings that somebody wants from the next step on."""

    settings: Settings
    asked_ns: int
    undoing: bool
    """Whether they are those of before a change, which is then forgotten."""


class Orders:
    """Taken from any thread, and taken up by the one that trains.

    Args:
        board: Those who wait for something new wait there.
    """

    def __init__(self, board: Board) -> None:
        self.running = False
        self.single = 0
        """So many steps, then a pause."""
        self.ending = False
        self.keep = False
        """Whether trained weights stay at the end."""
        self.bursts: tuple[Burst, ...] = ()
        """The newest; replaced, never changed."""
        self.trial: Trial | None = None
        """The last one that was asked for."""
        self.trials: deque[Trial] = deque()
        """Those that nobody has taken up."""
        self._board = board
        self._asked: Asked | None = None
        self._bursts_asked = 0
        self._before: deque[Settings] = deque(maxlen=UNDOS_KEPT)

    @property
    def pending(self) -> Settings | None:
        """What will be in force from the next step on."""
        asked = self._asked
        return None if asked is None else asked.settings

    def begin(self) -> None:
        """A new training: nothing of the one before is wanted."""
        self.ending = self.keep = self._board.ending = False
        self.running, self.single = False, 0

    def go(self, *, running: bool, single: int) -> None:
        """Train on, or so many steps and then pause."""
        with self._board.changed:
            self.running = running
            self.single += single
            self._board.changed.notify_all()

    def pause(self) -> None:
        """Wait after the step of now."""
        with self._board.changed:
            self.running, self.single = False, 0
            self._board.changed.notify_all()

    def end(self, *, keep: bool) -> None:
        """End the training; the first word on what to keep is final."""
        with self._board.changed:
            if not self.ending:
                self.keep = keep
                self.ending = self._board.ending = True
                self._board.status = "stopping"
                self._board.doing = "The session is stopping."
            self._board.changed.notify_all()

    def ask(self, settings: Settings, *, undoing: bool = False) -> None:
        """These settings from the next step on."""
        with self._board.changed:
            self._asked = Asked(settings=settings, asked_ns=time.monotonic_ns(), undoing=undoing)
            self._board.changed.notify_all()

    def take_settings(self) -> Asked | None:
        """What was asked for last, once."""
        with self._board.changed:
            asked, self._asked = self._asked, None
            return asked

    def undo(self) -> bool:
        """Ask for the settings of before the last change, or take back what only is pending.

        Returns:
            Whether there was something to undo.
        """
        with self._board.changed:
            if self._asked is not None and not self._asked.undoing:
                self._asked = None
                return True
            if not self._before:
                return False
            self.ask(self._before.pop(), undoing=True)
            return True

    def remember(self, before: Settings) -> None:
        """These were in force before a change that was applied."""
        with self._board.changed:
            self._before.append(before)

    def forget(self, before: Settings) -> None:
        """The change away from these has been taken back already."""
        with self._board.changed:
            if self._before and self._before[-1] == before:
                self._before.pop()

    def ask_burst(self, steps: int, reason: str) -> Burst:
        """A burst from the next step on."""
        with self._board.changed:
            self._bursts_asked += 1
            burst = Burst(number=self._bursts_asked, steps=steps, reason=reason)
            over = [one for one in self.bursts if one.over]
            gone = set(over[: max(0, len(over) - BURSTS_KEPT)])
            self.bursts = (*(one for one in self.bursts if one not in gone), burst)
            self._board.changed.notify_all()
        self._board.tell("burst")
        return burst

    def next_burst(self) -> Burst | None:
        """The first burst that waits."""
        return next((burst for burst in self.bursts if burst.status == "waiting"), None)

    def ask_trial(self, trial: Trial) -> None:
        """A comparison before the next step."""
        with self._board.changed:
            self.trial = trial
            self.trials.append(trial)
            self._board.changed.notify_all()
        self._board.tell("trial")

    def any(self) -> bool:
        """Whether anything is wanted but to wait."""
        return bool(
            self.ending or self._asked is not None or self.trials or self.running or self.single
        )

    def stepped(self) -> None:
        """One of the single steps was trained."""
        with self._board.changed:
            self.single = max(self.single - 1, 0)

    def close(self) -> None:
        """The training is over: nothing that still waits will come about."""
        for burst in self.bursts:
            burst.end("failed", "the session ended before it was recorded")
        for trial in self.trials:
            trial.end("cancelled", "the session ended before it began")
        self.trials.clear()
        self._asked = None
