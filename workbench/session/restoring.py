"""Put everything back as it was before a training, or keep what was trained."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from workbench.settings import Settings
from workbench.workload import Workload
from workbench.workload.applying import run_device
from workbench.workload.placement import settle_optimizers, start_device
from workbench.workload.snapshot import Snapshot
from workbench.workload.switches.reach import training_parts


@contextmanager
def put_back(work: Workload, settings: Settings, *, keep: Callable[[], bool]) -> Iterator[None]:
    """Train inside; afterwards all is as before, bit for bit, but for weights that are kept.

    Args:
        work: What is trained.
        settings: Of the beginning: their device is started first, which draws its seed.
        keep: Asked at the end whether weights, optimizer and scheduler stay as trained.
    """
    start_device(run_device(work, settings))
    snapshot = Snapshot(
        (work.model, work.loss, work.optimizer, work.scheduler, work.step), (work.data,)
    )
    try:
        yield
    finally:
        kept = keep()
        snapshot.restore(keep_training=kept)
        if kept:
            settle_optimizers(training_parts(work)[1])
