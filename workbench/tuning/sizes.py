"""Whether batches of two sizes count each sample alike: what can be compared of their losses."""

from workbench.settings import Settings
from workbench.tuning.parity import LOSS_UNITS, Parity, coarser
from workbench.tuning.running import Runner

MOST_PARTS = 8
"""Parts that a large batch is cut into."""
_TRAINING = (
    "Training takes other steps then: whether it ends as well, and with which learning rate, only "
    "a whole training can tell."
)


def same_per_sample(runner: Runner, a: Settings, b: Settings) -> Parity:
    """The loss of a large batch against the mean of its parts, from the same weights.

    A loss that is a mean over samples is the same in both; one that sums, or a model whose samples
    see each other (batch norm), makes another of it, and then nobody can tell.
    """
    from workbench.workload.objective import split

    size_a, size_b = runner.batch_size(a), runner.batch_size(b)
    if not size_a or not size_b:
        return Parity(verdict="cannot_tell", reason=f"the batch sizes are not known. {_TRAINING}")
    (whole,) = runner.draw(a if size_a > size_b else b, 1)
    ratio = max(size_a, size_b) // min(size_a, size_b)
    parts = list(split(whole, min(max(2, ratio), MOST_PARTS)))
    quiet = runner.random(b, [whole])
    together = runner.numbers(b, [whole], quiet=quiet)
    apart = [(runner.numbers(b, [part], quiet=quiet).losses[0], share) for part, share in parts]
    loss, known = together.losses[0], [(one, share) for one, share in apart if one is not None]
    if loss is None or len(known) < len(apart):
        return Parity(verdict="cannot_tell", reason=f"the losses cannot be seen. {_TRAINING}")
    mean = sum(one * share for one, share in known)
    precision, unit = coarser(together.precision)
    difference = abs(loss - mean) / max(abs(loss), abs(mean), 1e-30)
    same = difference <= LOSS_UNITS.get(precision, 1.0) * unit
    said = "each sample counts as before." if same else "a sample's loss depends on its batch."
    return Parity(
        verdict="as_expected" if same else "cannot_tell",
        reason=f"{said} {_TRAINING}",
        loss_difference=difference,
        unit=unit,
        precision=precision,
    )
