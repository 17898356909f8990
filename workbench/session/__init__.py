"""Training while you look: one worker thread, settings swapped between two steps."""

from workbench.session.burst import Burst
from workbench.session.records import Change, State
from workbench.session.session import Session
from workbench.session.trial import Trial

__all__ = ["Burst", "Change", "Session", "State", "Trial"]
