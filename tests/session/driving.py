"""Drive a session step by step."""

import time

from workbench.session import Session

WAIT_S = 60.0


def run(session: Session, steps: int) -> None:
    """Train exactly so many steps, then stand still."""
    for _ in range(steps):
        before = session.state.step
        session.step_once()
        until = time.monotonic() + WAIT_S
        while session.state.step == before or session.state.status == "running":
            assert time.monotonic() < until, session.state
            assert session.state.status != "failed", session.state
            time.sleep(0.002)
