"""Where a training of this process will hand over to ranks, and come back from them."""

from workbench.errors import SettingError
from workbench.settings import Settings


def refuse_ranks(settings: Settings) -> None:
    """Refuse settings that need more than this process.

    This is the one place for them: ``Course.enter`` calls it between two steps, when nothing is in
    force. Then the weights are the model's own, whole and on their own device; the optimizers hold
    their state for these very weights; and the feed's ``EpochOrder`` knows which samples are left
    of the epoch. Ranks would start from these three, train in place of ``Course.step``, and their
    weights, optimizer state and place would be written into the same objects before other
    settings come into force.

    Raises:
        SettingError: The settings need ranks.
    """
    parallel = settings.ranks
    if parallel is not None:
        raise SettingError(
            f"parallel={parallel} cannot act in a training that is under way, which has one "
            "process: leave it out, or let wb.profile start processes of their own for it."
        )
