"""A workload under one set of settings for a part of one training, which goes on after it."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor

from workbench.settings import Settings
from workbench.workload.applying import run_device
from workbench.workload.checks import check_copies, check_reach
from workbench.workload.feed import Feed
from workbench.workload.inference_mode import outside_inference_mode
from workbench.workload.placement import settle_optimizers, start_device
from workbench.workload.precision import check_precision
from workbench.workload.preparation import ready
from workbench.workload.snapshot.flags import save_flags
from workbench.workload.snapshot.random_state import save_random_state
from workbench.workload.snapshot.reach import reachable
from workbench.workload.snapshot.tensors import SavedTensor, save_tensor
from workbench.workload.switches.casting import match_parameters
from workbench.workload.switches.reach import training_parts
from workbench.workload.training import Training
from workbench.workload.workload import Workload

_OBJECTS = 2_000_000


class Stretch:
    """Applies settings between two steps of a training, and takes them back between two others.

    Unlike :func:`~workbench.workload.prepare` it remembers no numbers: what training has changed
    stays, random states and the place in the data among it. Only what the settings changed is as
    it was: dtype, place and layout of tensors, flags, patches.

    Args:
        work: What is trained.
        settings: What to change.
        feed: Gives the batches; it is opened under these settings and goes on after them.
    """

    def __init__(self, work: Workload, settings: Settings, feed: Feed) -> None:
        self.lost: str | None = None
        """What of the data is lost by the change, a sentence."""
        self._work = work
        self._settings = settings
        self._undo = ExitStack()
        self._flags = save_flags()
        self._tensors: tuple[SavedTensor, ...] = ()
        try:
            with _unnoticed():
                self.training = self._begin(feed)
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Take the settings back; doing it twice is fine."""
        training: Training | None = getattr(self, "training", None)
        with _unnoticed():
            try:
                if training is not None:
                    training.close()
                self._undo.close()
            finally:
                self._return_tensors()
                self._flags.restore()
                torch.clear_autocast_cache()

    def _begin(self, feed: Feed) -> Training:
        work, settings, notes = self._work, self._settings, list[str]()
        check_reach(work, settings)
        device = run_device(work, settings)
        check_precision(settings.precision, device, notes)
        check_copies(settings, device)
        start_device(device)
        if _replaces_tensors(work, settings):
            self._tensors = tuple(_tensors(work))
        self.lost = feed.open(settings)
        notes.extend(feed.notes)
        return ready(
            work,
            settings,
            feed.source,
            device,
            notes=notes,
            undo=self._undo,
            batches=feed.batches,
        )

    def _return_tensors(self) -> None:
        tensors, self._tensors = self._tensors, ()
        if not tensors:
            return
        with outside_inference_mode(), torch._C.DisableTorchFunctionSubclass(), torch.no_grad():
            for tensor in tensors:
                tensor.return_home()
        modules, optimizers = training_parts(self._work)
        settle_optimizers(optimizers)
        match_parameters(modules, optimizers)


def _replaces_tensors(work: Workload, settings: Settings) -> bool:
    """Whether weights get another dtype, place or layout, so that these must be remembered."""
    return (
        settings.precision == "bf16_pure"
        or settings.channels_last is not None
        or (settings.device or work.device) is not None
    )


def _tensors(work: Workload) -> Iterator[SavedTensor]:
    roots: tuple[Any, ...] = (work.model, work.loss, work.optimizer, work.scheduler, work.step)
    with outside_inference_mode(), torch._C.DisableTorchFunctionSubclass():
        for target, _ in reachable(roots, seen={}, limit=_OBJECTS):
            if isinstance(target, Tensor):
                yield save_tensor(target)


@contextmanager
def _unnoticed() -> Iterator[None]:
    """Let random numbers that are drawn inside be drawn again: training goes on as without it."""
    before = save_random_state()
    try:
        yield
    finally:
        before.restore()
