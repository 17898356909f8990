"""The one error family: every message says what happened, where, and what to do next."""


class WorkbenchError(Exception):
    """Base of every error that this package raises on purpose."""


class TraceError(WorkbenchError):
    """A file could not be read as a trace."""


class SettingError(WorkbenchError, ValueError):
    """A setting is invalid, or cannot act on this object or machine."""


class WorkloadError(WorkbenchError):
    """The model, data, loss or step do not fit together."""


class ProfilerBusyError(WorkbenchError):
    """Another profiler is active in this process."""


class TimeLimitError(WorkbenchError):
    """Something took longer than its time limit and was cancelled."""


class RankError(WorkbenchError):
    """A rank of a job failed; the message holds the traceback of the first one that did."""


class RunError(WorkbenchError):
    """A Run folder is missing, damaged, or cannot be written."""


class DatasetError(WorkbenchError):
    """A data set could not be made or found."""


class ReportError(WorkbenchError):
    """A report could not be made or written."""


class LessonError(WorkbenchError):
    """An exercise of a lesson is not solved yet."""


class CellError(ReportError):
    """A cell of a report's notebook failed."""

    def __init__(self, message: str, shown: str) -> None:
        super().__init__(message)
        self.shown = shown
        """The whole cell, and the traceback as the kernel gave it."""


class GateError(WorkbenchError):
    """A gate could not be measured, or what it judged became worse."""


class MissingExtraError(WorkbenchError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}, which is not installed. "
            f'Install it with:  pip install "torch-workbench[{extra}]"  '
            f'or, from a clone:  pip install ".[{extra}]"'
        )
        self.package = package
        self.extra = extra
