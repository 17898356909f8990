"""Blocks in processes of their own, where one of the compared settings needs several of them.

Each block is a launch of its own, also those of the loop in one process. So every block starts from
the very weights, random state and place in the data that the caller holds, without a way back from
weights that are divided among ranks; nothing of one side lives while the other is measured, be it
memory, threads of a back end or a device; and what only fresh processes do meets both sides. A
launch takes seconds, which are in no step time.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.recording.progress import Progress
from workbench.settings import Settings
from workbench.tuning.block import About, Driven, Measuring, set_up
from workbench.tuning.conditions import ConditionsProbe
from workbench.tuning.trial import FairBlock

if TYPE_CHECKING:
    from workbench.parallel.rank import Rank
    from workbench.workload import Workload
    from workbench.workload.training import Training

WHAT = "the comparison of settings"
LEAD = 10
"""Steps that a block leaves out at least: its process has never trained before."""
NO_LIMIT_S = 24 * 3600.0


class Stopped(Exception):  # noqa: N818 - a signal within this room, never shown
    """Somebody wants no more of it."""


def check_ranks(work: "Workload", settings: Settings) -> None:
    """Refuse what ranks cannot do, before any process starts.

    Raises:
        SettingError: Saying what to leave out or to use instead.
    """
    from workbench.parallel.job import refuse_nested
    from workbench.parallel.placing import check_workload, place
    from workbench.workload.checks import check_reach

    if settings.ranks is None:
        return
    refuse_nested(WHAT)
    check_reach(work, replace(settings, parallel=None))
    place(work, settings, settings.ranks)
    check_workload(work, settings, settings.ranks)


def sharing_note(work: "Workload", settings: Settings) -> str | None:
    """What ranks on processors that they share can tell, and what not; ``None`` on devices."""
    import torch

    from workbench.machine import usable_cpus
    from workbench.parallel.placing import place

    if settings.ranks is None:
        return None
    placed = place(work, settings, settings.ranks)
    if placed["device"] != "cpu":
        return None
    size, each = placed["world_size"], placed["threads"]
    return (
        f"{size} ranks share {usable_cpus()} processors, {each} thread{'s' * (each > 1)} each; one "
        f"process has {torch.get_num_threads()} on the same ones. Nothing was added, so this tells "
        "what spreading costs here, and not what it gains where each rank has a device of its own. "
        "Memory is that of all ranks together"
    )


def warm_up(
    work: "Workload", settings: Settings, measuring: Measuring, *, time_limit_s: float | None
) -> tuple[tuple[int, ...], About]:
    """Times of the first steps in fresh processes, until they are steady."""
    found = _run(work, settings, measuring, time_limit_s, count=None)
    if found is None:
        raise KeyboardInterrupt
    times, about = found
    return times, about


def measure(
    work: "Workload",
    settings: Settings,
    measuring: Measuring,
    *,
    position: int,
    count: int,
    time_limit_s: float | None,
    whole: int = 1,
) -> tuple[FairBlock, About] | None:
    """One block in fresh processes; ``None`` when somebody wanted no more steps.

    Raises:
        Exception: That of the first failing rank.
    """
    conditions = ConditionsProbe()
    found = _run(
        work, settings, measuring, time_limit_s, count=count, position=position, whole=whole
    )
    if found is None:
        return None
    block, about = found
    for _ in range(count + 1):
        measuring.progress.advance()
    return replace(block, conditions=conditions.read()), about


def _run(
    work: "Workload",
    settings: Settings,
    measuring: Measuring,
    time_limit_s: float | None,
    **order: Any,
) -> Any:
    """What rank 0 gives for an order."""
    if measuring.stop():
        return None
    measuring.progress.stage(f"{settings}, in processes of its own")
    try:
        return in_ranks(
            _block, work, settings, order, time_limit_s=time_limit_s, stopped=measuring.stop
        )[0]
    except Stopped:
        return None


def in_ranks(
    function: Callable[..., Any],
    work: "Workload",
    settings: Settings,
    order: dict[str, Any],
    *,
    time_limit_s: float | None,
    stopped: Callable[[], bool] = bool,
) -> tuple[Any, ...]:
    """Run ``function(rank, payload)`` in the processes that the settings need, be it one.

    Raises:
        Stopped: Somebody wanted no more of it.
    """
    import torch

    from workbench.parallel.launch import launch
    from workbench.parallel.placing import place
    from workbench.parallel.spread import random_states

    if settings.ranks is None:
        placed: dict[str, Any] = {"world_size": 1, "threads": torch.get_num_threads()}
        launcher = "local"
    else:
        placed = place(work, settings, settings.ranks)
        launcher = settings.ranks.launcher or "local"

    def look() -> None:
        if stopped():
            raise Stopped

    payload = {"work": work, "settings": settings, "placed": placed, "random": random_states()}
    return launch(
        function,
        {**payload, "order": order},
        world_size=placed["world_size"],
        launcher=launcher,
        threads=placed["threads"],
        time_limit_s=time_limit_s,
        what=WHAT,
        look=look,
    )


def _block(rank: "Rank", payload: dict[str, Any]) -> Any:
    """A block, or the warm-up where no steps are asked for, as one rank."""
    order = payload["order"]
    with opened(rank, payload) as driven:
        if order["count"] is None:
            times = driven.warm_up(agree=rank.agree)
            driven.learn()
            return times, _about(driven, payload)
        block = driven.block(order["position"], order["count"], order["whole"], lead=LEAD)
        if block is None:
            raise AssertionError("nobody can stop a rank from inside")
        driven.learn()
        every = rank.gather(
            {
                "losses": block.losses,
                "memory": [block.peak_rss_bytes, block.workers_bytes, block.device_peak_bytes],
            }
        )
        return together(block, every, payload["settings"]), _about(driven, payload)


@contextmanager
def opened(rank: "Rank", payload: dict[str, Any]) -> Iterator[Driven]:
    """The workload of a payload as one rank, ready to be driven."""
    import torch

    from workbench.parallel.spread import set_random_states, spread
    from workbench.workload import prepare

    work, settings = payload["work"], payload["settings"]
    torch.set_num_threads(payload["placed"]["threads"])
    prepared: AbstractContextManager[Training]
    if settings.ranks is not None:
        rank.join(payload["placed"]["backend"], NO_LIMIT_S)
        set_random_states(payload["random"])
        prepared = spread(work, settings, rank)
    else:
        set_random_states(payload["random"])
        prepared = prepare(work, settings)
    measuring = Measuring(progress=Progress(shown=False, title=""))
    with set_up(work, settings, measuring, None, prepared=prepared) as driven:
        yield driven


def _about(driven: Driven, payload: dict[str, Any]) -> About:
    """What is in force, with how it was spread."""
    about, ranks, placed = driven.about, payload["settings"].ranks, payload["placed"]
    if ranks is None:
        return about
    spread = {
        "parallel": ranks.to_json(),
        "world_size": placed["world_size"],
        "backend": placed["backend"],
        "launcher": ranks.launcher or "local",
    }
    return replace(about, effective=about.effective | spread)


def together(block: FairBlock, every: list[dict[str, Any]], settings: Settings) -> FairBlock:
    """The block of rank 0 with what is true of all ranks together.

    Times are those of rank 0. Which waits for processors were other programs' doing is not known:
    the other ranks are no strangers, and they are not ours either.
    """
    ranks = settings.ranks
    if ranks is None:
        return block
    losses = [each["losses"] for each in every]
    if ranks.divides_batches:
        # Shares are of one size on all ranks, whichever of them left out more steps as warm-up.
        samples = tuple(None if n is None else n * len(every) for n in block.samples)
        means = tuple(sum(step) / len(step) for step in zip(*losses, strict=True))
    else:
        samples = block.samples
        means = tuple(losses[-1] if ranks.mode == "pp" else losses[0])
    rss, workers, device = zip(*(each["memory"] for each in every), strict=True)
    return replace(
        block,
        samples=samples,
        losses=means,
        sample_hashes=(),
        delay_ns=None,
        delay_share=None,
        peak_rss_bytes=None if None in rss else sum(rss),
        workers_bytes=None if None in workers else sum(workers),
        device_peak_bytes=max((n for n in device if n is not None), default=None),
    )
