"""A comparison under fair conditions between two steps of a training, which waits for it."""

from workbench.session.live import Live
from workbench.session.stopping import COMPARING
from workbench.session.switching import enter
from workbench.session.told import forget, told
from workbench.session.trial import Trial


def compare(live: Live, trial: Trial) -> None:
    """Compare what was asked with the settings in force, from the weights of now."""
    from workbench.tuning import verify

    board, orders = live.board, live.orders
    if trial.cancelled:
        trial.end("cancelled")
        board.tell("trial")
        return
    if live.owner is None:
        raise AssertionError("the session has no right to profile")
    trial.status = "running"
    board.say("busy", f"Comparing {trial!r} with the settings in force; training waits.")
    board.tell("trial")
    try:
        live.course.leave()
        with live.owner.lent(), live.code.stage(COMPARING):
            trial.verification = verify(
                live.work,
                trial.asked,
                before=board.settings,
                folder=live.folder,
                progress=False,
                interrupted=lambda: trial.cancelled or orders.ending,
                **trial.options,
            )
    except KeyboardInterrupt:
        trial.end("cancelled")
    except Exception as error:  # noqa: BLE001 - of the user's code, and told
        trial.end("failed", told(error)[0])
        forget(error)
    except BaseException:
        trial.end("cancelled", "the session ended")
        raise
    else:
        trial.end("done")
    enter(live, board.settings)
    board.tell("trial")
