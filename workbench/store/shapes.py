"""What the open parts of a record look like where they are read; a file can have been edited."""

from typing import Annotated, Any, NotRequired, TypedDict

import msgspec

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
_Positive = Annotated[float, msgspec.Meta(gt=0)]
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class _Effective(TypedDict, total=False):
    device: str | None
    precision: str | None
    batch_size: _Count | None
    workers: _Count | None
    prefetch_factor: _Count | None
    threads: _Count | None
    pin_memory: bool | None
    persistent_workers: bool | None


class _Load(TypedDict, total=False):
    load_average_before: float | None
    load_average_after: float | None
    others_cpu_share: _Share | None


class _Alone(TypedDict):
    batches_per_s: _Positive
    samples_per_s: _Positive | None
    batches: NotRequired[_Count]
    seconds: NotRequired[_Positive]
    epochs: NotRequired[_Count | None]


class _Room(TypedDict):
    batch_bytes: _Positive
    need_bytes: _Count
    free_bytes: _Count


class _Repetition(TypedDict):
    samples: _Count
    repeated: _Count


class _Checks(TypedDict, total=False):
    shared_memory: _Room | None
    repetition: _Repetition | None
    batches_in_epoch: _Count | None


class _Loader(TypedDict, total=False):
    overhead_share: float | None


SHAPES: dict[str, Any] = {
    "effective": _Effective,
    "load": _Load | None,
    "loader": _Loader | None,
    "loader_alone": _Alone | None,
    "input_checks": _Checks | None,
}
"""By the name of the part; what is not named there may be anything."""


def check_shapes(parts: object) -> None:
    """Refuse parts that no reader could take.

    Args:
        parts: Has each of :data:`SHAPES` as an attribute.

    Raises:
        ValueError: naming the part and what is wrong with it.
    """
    for name, shape in SHAPES.items():
        try:
            msgspec.convert(getattr(parts, name), shape)
        except msgspec.ValidationError as error:
            raise ValueError(f"{name}: {error}") from error
