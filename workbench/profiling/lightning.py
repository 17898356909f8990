"""A callback that captures a window of Lightning's training loop.

::

    from workbench.profiling.lightning import ProfileCallback

    profile = ProfileCallback("runs/mine")
    Trainer(callbacks=[profile]).fit(model)
    profile.run.findings
"""

import importlib
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import MissingExtraError, WorkbenchError
from workbench.profiling.capture import Capture
from workbench.settings import Record

if TYPE_CHECKING:
    from workbench.run.run import Run

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def _callback_class() -> type[Any]:
    """``Callback`` of the Lightning that is in use: it goes by two names."""
    for name in sorted(_PACKAGES, key=lambda name: name not in sys.modules):
        try:
            found: type[Any] = importlib.import_module(name).Callback
        except ModuleNotFoundError:
            continue
        return found
    raise MissingExtraError("lightning", "dev", "ProfileCallback")


class ProfileCallback(_callback_class()):  # type: ignore[misc]
    """Records a window of the fit; ``run`` gives the Run afterwards.

    A step is a batch of the training loop. Waits for input are seen in the trace; without the
    profiler Lightning does not let them be measured.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        record: Record = Record(),  # noqa: B008 - frozen
        warmup: int = 2,
        steps: int = 10,
    ) -> None:
        super().__init__()
        self._folder = folder
        self._options: dict[str, Any] = {"record": record, "warmup": warmup, "steps": steps}
        self._capture = self._make()

    def _make(self) -> Capture:
        return Capture(self._folder, **self._options, gives_way=True)

    @property
    def run(self) -> "Run":
        """The Run of the last fit."""
        return self._capture.run

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin: sanity checks are over."""
        self._capture = self._make()
        self._capture.__enter__()

    def on_train_batch_end(self, trainer: Any, *rest: Any, **more: Any) -> None:
        """A step is complete; a capture that gave way to a later one is over."""
        if self._capture.is_running():
            self._capture.step()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Write the Run; where that fails ``run`` says why, and the training is not lost."""
        with suppress(WorkbenchError):
            self._capture.__exit__(None, None, None)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Keep what is complete."""
        self._capture.__exit__(type(exception), exception, None)
