"""Everything that a run may change, remembered before it and put back after it."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch

from workbench.errors import WorkloadError
from workbench.workload.inference_mode import outside_inference_mode
from workbench.workload.shutdown import shut_down
from workbench.workload.snapshot.flags import save_flags
from workbench.workload.snapshot.part import Part, save_part
from workbench.workload.snapshot.random_state import save_random_state

_TRAINING_OBJECTS = 2_000_000
_DATA_OBJECTS = 50_000
_LOOSE_TRAINING_BYTES = 2**30
_LOOSE_DATA_BYTES = 2**26


class Snapshot:
    """The state of a training loop, of its data, and of the process around it.

    Weights, buffers, gradients, optimizer, scheduler and scaler state are copied to host memory
    and written back into the same storages, so that every reference the user holds stays good.
    Containers and attributes are remembered by reference and get the same members back. Numbers
    of a data set beyond 64 MiB, and other loose tensors beyond 1 GiB, are not copied
    (:attr:`left_bytes`): reading them does not change them. Of an object that holds a thread, lock
    or queue only the models, optimizers, tensors and generators are put back; a file that is only
    read is read on from where it was; files that are written, windows and
    data frames are left alone.

    Args:
        training: Model, loss, optimizers, schedulers, own step: what training changes.
        data: The data and its loader.
    """

    def __init__(self, training: Iterable[object], data: Iterable[object]) -> None:
        self._flags = save_flags()
        self._random = save_random_state()
        with _as_stored():
            self._save(training, data)
        self.left_bytes = self._training.left_bytes
        """Bytes of loose tensors on the training side that were too many to copy."""

    def _save(self, training: Iterable[object], data: Iterable[object]) -> None:
        seen: dict[int, Any] = {}
        storages: set[tuple[Any, ...]] = set()
        self._training: Part = save_part(
            training,
            seen=seen,
            storages=storages,
            limit=_TRAINING_OBJECTS,
            loose_bytes=_LOOSE_TRAINING_BYTES,
        )
        self._data: Part = save_part(
            data,
            seen=seen,
            storages=storages,
            limit=_DATA_OBJECTS,
            loose_bytes=_LOOSE_DATA_BYTES,
        )

    def restore(self, *, keep_training: bool = False) -> None:
        """Put everything back; may be called again when it was interrupted.

        Args:
            keep_training: Leave weights, buffers, optimizer, scheduler and whatever else training
                changes at their new values (in their old place, dtype and layout).

        Raises:
            WorkloadError: When something could not be put back; everything else was.
        """
        errors: list[Exception] = []
        with _as_stored():
            _attempt(self._actions(keep_training), errors)
        _attempt((self._random.restore, self._flags.restore), errors)
        if errors:
            raise WorkloadError(
                f"{len(errors)} parts of the training state could not be put back "
                f"({type(errors[0]).__name__}: {errors[0]}): build the model and loader anew."
            ) from errors[0]

    def _actions(self, keep_training: bool) -> Iterator[Callable[[], Any]]:
        for part in (self._training, self._data):
            yield from _loader_actions(part)
        yield from _part_actions(self._data)
        if keep_training:
            for tensor in self._training.tensors:
                yield tensor.return_home
        else:
            yield from _part_actions(self._training)
        # Casts of weights that an outer autocast region keeps would be those of the run.
        yield torch.clear_autocast_cache


@contextmanager
def _as_stored() -> Iterator[None]:
    """See tensors as what they are stored as; a class of the user's own may refuse or count it."""
    with outside_inference_mode(), torch._C.DisableTorchFunctionSubclass():
        yield


def _attempt(actions: Iterable[Callable[[], Any]], errors: list[Exception]) -> None:
    """Do all actions, whatever becomes of one of them."""
    for action in actions:
        try:
            action()
        except Exception as error:  # noqa: BLE001
            errors.append(error)


def _part_actions(part: Part) -> Iterator[Callable[[], Any]]:
    for binding in part.bindings:
        yield binding.restore
    for tensor in part.tensors:
        yield tensor.restore
    for value in part.values:
        yield value.restore
    for module, training in part.modes:
        if module.training != training:
            yield partial(setattr, module, "training", training)


def _loader_actions(part: Part) -> Iterator[Callable[[], Any]]:
    for loader, before in part.loaders:
        now = loader.__dict__.get("_iterator")
        if now is not None and now is not before:
            yield partial(shut_down, now)
