"""A callback that captures a window of a Hugging Face Trainer's loop.

::

    from workbench.profiling.huggingface import ProfileCallback

    profile = ProfileCallback("runs/mine")
    Trainer(model, args, train_dataset=data, callbacks=[profile]).train()
    profile.run.findings
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import MissingExtraError
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
        """The Run of the last training."""
        return self._capture.run

    def on_train_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """Begin. A training that failed before never said so; its capture is closed now."""
        self._capture = self._make()
        self._capture.__enter__()

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """A step is complete."""
        self._capture.step()

    def on_train_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        """Write the Run."""
        self._capture.__exit__(None, None, None)
