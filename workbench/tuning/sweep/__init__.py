"""How a loader should load: workers, queue, pinning and fetch, by few short trials."""

from workbench.tuning.sweep.record import LoaderSweep, SweepRow
from workbench.tuning.sweep.sweep import sweep_loader

__all__ = ["LoaderSweep", "SweepRow", "sweep_loader"]
