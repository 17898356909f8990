"""What the switches change and what is recorded, as frozen records."""

from workbench.settings.checks import asked_of_workers
from workbench.settings.parallel import Parallel, ParallelMode
from workbench.settings.record import Record, check_records
from workbench.settings.settings import (
    Attention,
    CompileMode,
    MatmulPrecision,
    OptimizerLoop,
    Precision,
    Settings,
    StartMethod,
)

__all__ = [
    "Attention",
    "CompileMode",
    "MatmulPrecision",
    "OptimizerLoop",
    "Parallel",
    "ParallelMode",
    "Precision",
    "Record",
    "Settings",
    "StartMethod",
    "asked_of_workers",
    "check_records",
]
