"""Put everything back as it was before a training, or keep what was trained."""

from collections.abc import Iterator
from contextlib import contextmanager

from workbench.session.live import Live
from workbench.workload.applying import run_device
from workbench.workload.placement import settle_optimizers, start_device
from workbench.workload.snapshot import Snapshot
from workbench.workload.switches.reach import training_parts


@contextmanager
def put_back(live: Live) -> Iterator[None]:
    """Train inside; afterwards all is as before, bit for bit, but for weights that are kept.

    The device is started before anything is remembered, because that draws its seed.
    """
    work = live.work
    start_device(run_device(work, live.board.settings))
    snapshot = Snapshot(
        (work.model, work.loss, work.optimizer, work.scheduler, work.step), (work.data,)
    )
    live.whole = False
    try:
        yield
    finally:
        kept = live.orders.keep
        snapshot.restore(keep_training=kept)
        if kept:
            settle_optimizers(training_parts(work)[1])
        live.whole = True
