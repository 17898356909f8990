"""See where every microsecond of a training step goes, flip a switch, and know if it helped.

Names are loaded when first used, so that ``import workbench`` costs little and reading a trace
needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from workbench.version import version

if TYPE_CHECKING:
    from workbench.profiling.capture import capture
    from workbench.profiling.profile import profile
    from workbench.reporting.report import report
    from workbench.run.compare import compare
    from workbench.run.run import Run
    from workbench.run.source import open_run as open  # noqa: A004
    from workbench.run.source import runs
    from workbench.settings import Record, Settings
    from workbench.tuning.tune import tune
    from workbench.tuning.verify import verify
    from workbench.widgets.panel import panel
    from workbench.workload import Workload

__version__ = version()

_WHERE = {
    "Workload": "workbench.workload:Workload",
    "Settings": "workbench.settings:Settings",
    "Record": "workbench.settings:Record",
    "Run": "workbench.run.run:Run",
    "profile": "workbench.profiling:profile",
    "capture": "workbench.profiling:capture",
    "open": "workbench.run.source:open_run",
    "runs": "workbench.run.source:runs",
    "compare": "workbench.run.compare:compare",
    "verify": "workbench.tuning:verify",
    "tune": "workbench.tuning:tune",
    "report": "workbench.reporting:report",
    "panel": "workbench.widgets.panel:panel",
}

__all__ = [
    "Record",
    "Run",
    "Settings",
    "Workload",
    "capture",
    "compare",
    "open",
    "panel",
    "profile",
    "report",
    "runs",
    "tune",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'workbench' has no attribute {name!r}")
    module, attribute = _WHERE[name].split(":")
    try:
        value = getattr(import_module(module), attribute)
    except ModuleNotFoundError as missing:
        if missing.name != "torch":
            raise
        from workbench.errors import MissingExtraError

        raise MissingExtraError("torch", "torch", f"workbench.{name}") from missing
    globals()[name] = value
    return value


def load_ipython_extension(shell: Any) -> None:
    """Make ``%load_ext workbench`` offer the cell magic ``%%workbench``."""
    from workbench.widgets.magic import load_ipython_extension as load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Take the magic away again."""
    from workbench.widgets.magic import unload_ipython_extension as unload

    unload(shell)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
