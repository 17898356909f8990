"""Whether other settings compute the same numbers as the loop did, by running both."""

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from workbench.errors import SettingError
from workbench.recording.progress import Progress
from workbench.settings import Settings
from workbench.tuning.block import Measuring
from workbench.tuning.outcome import outcome_of
from workbench.tuning.parity import Parity, coarser, judge
from workbench.tuning.running import Runner
from workbench.tuning.sizes import same_per_sample

if TYPE_CHECKING:
    from workbench.workload import Workload

STEPS = 5
"""Enough for an update to show in a loss, few enough that rounding has not grown to anything."""
BY_DESIGN = ("clip_norm",)
"""Settings that change gradients on purpose."""


def parity(
    work: "Workload",
    settings: Settings | None,
    *,
    before: Settings | None = None,
    steps: int = STEPS,
    time_limit_s: float | None = 120,
    progress: Progress | None = None,
) -> Parity:
    """Whether ``settings`` compute the same as ``before``, on the same batches.

    Both start from the same weights, optimizer and random state and get the very same batches, as
    the loop draws them now; ``before`` is run twice for what it differs from itself. Settings of
    the loader only bring batches, so they are left out here. Where the random numbers of a step
    cannot be the same, as in compiled code, dropout is set to 0 on all sides.

    Everything is as it was afterwards. An error of the second setting is the reason why nobody
    can tell; one of the first is raised.

    Raises:
        SettingError: ``steps`` is no whole number of at least 1.
        TimeLimitError: It took too long.
    """
    if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
        raise SettingError(f"steps={steps!r} must be a whole number of at least 1.")
    first, second = before or Settings(), settings or Settings()
    runner = Runner(
        work, Measuring(progress=progress or Progress(shown=False, title=work.title)), time_limit_s
    )
    found = _only_loader()
    if computing(first) != computing(second):
        found = _compared(runner, computing(first), computing(second), steps)
    if not found.ok or first.batch_size == second.batch_size:
        return found
    return _with_sizes(found, runner, first, second)


def _compared(runner: Runner, a: Settings, b: Settings, steps: int) -> Parity:
    """What both compute on the same batches."""
    batches = runner.draw(a, steps)
    quiet, said = _quiet(runner, a, b, batches)
    first, again = (runner.numbers(a, batches, quiet=quiet) for _ in range(2))
    _, unit = coarser(first.precision, b.precision or "fp32")
    nudged = runner.nudged(a, batches, quiet=quiet, nudge=unit)
    try:
        other = runner.numbers(b, batches, quiet=quiet)
    except Exception as error:  # noqa: BLE001 - of the setting, and told
        return Parity(verdict="cannot_tell", reason=f"it did not run: {outcome_of(error)[1]}")
    asked = [name for name in BY_DESIGN if getattr(a, name) != getattr(b, name)]
    return judge(first, again, other, nudged=nudged, by_design=asked, said=said)


def _quiet(runner: Runner, a: Settings, b: Settings, batches: list[Any]) -> tuple[bool, str]:
    """Whether dropout must be 0 on both sides, and the words for why."""
    compiles = b.compile not in {None, False} and b.compile != a.compile
    if not (compiles or a.ranks != b.ranks) or not runner.random(a, batches):
        return False, ""
    who = "compiled code draws" if compiles else "each rank draws"
    return True, f"with dropout 0, because {who} other random numbers: "


def _with_sizes(found: Parity, runner: Runner, a: Settings, b: Settings) -> Parity:
    """Whether a batch of another size counts each sample as before."""
    try:
        sizes = same_per_sample(runner, replace(a, parallel=None), replace(b, parallel=None))
    except Exception as error:  # noqa: BLE001 - of the setting, and told
        sizes = Parity(verdict="cannot_tell", reason=f"it did not run: {outcome_of(error)[1]}")
    return replace(
        sizes,
        reason=sizes.reason if found.steps == 0 else f"{found.reason} {sizes.reason}",
        gradient_difference=found.gradient_difference,
        output_difference=found.output_difference,
        later_difference=found.later_difference,
        noise=found.noise,
        steps=found.steps,
    )


def computing(settings: Settings) -> Settings:
    """The settings without those that only change how batches are brought."""
    from workbench.workload.loader import LOADER_SETTINGS

    left_out = {*LOADER_SETTINGS, "cpu_affinity"}
    kept = {f.name: getattr(settings, f.name) for f in fields(settings) if f.name not in left_out}
    return Settings(**kept)


def _only_loader() -> Parity:
    """What can be said where nothing that computes is switched."""
    return Parity(
        verdict="as_expected",
        reason="only the loader is switched: each step computes the same on the same batch.",
    )
