"""A callback that captures a window of a Hugging Face Trainer's loop.

::

    from workbench.profiling.huggingface import ProfileCallback

    profile = ProfileCallback("runs/mine")
    Trainer(model, args, train_dataset=data, callbacks=[profile]).train()
    profile.run.findings
"""

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import MissingExtraError, WorkbenchError
from workbench.profiling.capture import Capture
from workbench.settings import Record

try:
    from transformers import TrainerCallback
except ModuleNotFoundError as missing:
    raise MissingExtraError("transformers", "dev", "ProfileCallback") from missing

if TYPE_CHECKING:
    from workbench.run.run import Run


class ProfileCallback(TrainerCallback):
    """Records a window of the training; ``run`` gives the Run afterwards.

    A step is an optimizer step, with all its accumulation. Waits for input are seen in the trace;
    without the profiler the Trainer does not let them be measured.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        *,
        record: Record = Record(),  # noqa: B008 - frozen
        warmup: int = 2,
        steps: int = 10,
    ) -> None:
        self._folder = folder
        self._options: dict[str, Any] = {"record": record, "warmup": warmup, "steps": steps}
        self._capture = self._make()

    def _make(self) -> Capture:
        return Capture(self._folder, **self._options, gives_way=True)

    @property
    def run(self) -> "Run":
        """The Run of the last training; one that failed without a word is taken as over."""
        self._end_with_cell()
        return self._capture.run

    def on_train_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """Begin. A training that failed before never said so; its capture is closed now."""
        self._capture = self._make()
        self._capture.__enter__()
        if (events := _notebook_events()) is not None:
            events.register("post_run_cell", self._end_with_cell)

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """A step is complete; a capture that gave way to a later one is over."""
        if self._capture.is_running():
            self._capture.step()

    def on_train_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """Write the Run; where that fails ``run`` says why, and the training is not lost."""
        with suppress(WorkbenchError):
            self._capture.__exit__(None, None, None)
        self._forget_cell()

    def _end_with_cell(self, *result: Any) -> None:
        """A training that fails tells no callback, but the cell that ran it ends."""
        if not self._capture.is_elsewhere():
            self._capture.abandon()
            self._forget_cell()

    def _forget_cell(self) -> None:
        events = _notebook_events()
        if events is not None and self._end_with_cell in events.callbacks["post_run_cell"]:
            events.unregister("post_run_cell", self._end_with_cell)


def _notebook_events() -> Any:
    """IPython's events where a notebook has loaded it; it is never loaded for this."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return None if shell is None else shell.events
