"""What the switches change, as one frozen record; ``None`` always means *as the user has it*."""

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from workbench.errors import SettingError

Precision = Literal["fp32", "tf32", "bf16", "fp16"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that a switch can change for a run.

    A field left at ``None`` is not touched. The record checks itself once, when it is made;
    whether a setting can act on a given model, loader or machine is checked when it is applied.
    """

    precision: Precision | None = None
    """fp32 (autocast and TF32 off), tf32, bf16 autocast, fp16 autocast with gradient scaling."""
    batch_size: int | None = None
    """Samples per batch; the learning rate is never changed with it."""
    accumulation: int | None = None
    """Micro-batches per optimizer step; the loss of each is divided by their number."""
    workers: int | None = None
    """Data-loader worker processes; 0 loads in the training process."""
    prefetch_factor: int | None = None
    """Batches that each worker holds ready; needs at least one worker."""
    pin_memory: bool | None = None
    """Copy batches to page-locked memory, from which a device copies faster."""
    persistent_workers: bool | None = None
    """Keep workers alive between epochs; needs at least one worker."""
    non_blocking: bool | None = None
    """Let copies to the device overlap with the host; needs pinned memory to act."""
    compile: bool | None = None
    """Run the model through ``torch.compile``."""
    channels_last: bool | None = None
    """Keep 4-d weights and inputs in channels-last memory order."""

    def __post_init__(self) -> None:
        if self.precision is not None and self.precision not in get_args(Precision):
            allowed = ", ".join(get_args(Precision))
            raise SettingError(f"precision={self.precision!r} is unknown; use one of {allowed}.")
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise SettingError(f"{name}={value!r} must be a whole number.")
            if value < least:
                raise SettingError(f"{name}={value} must be at least {least}.")
        for name in _SWITCHES:
            value = getattr(self, name)
            if value is not None and not isinstance(value, bool):
                raise SettingError(f"{name}={value!r} must be True, False or None.")
        if self.workers == 0:
            for name in ("prefetch_factor", "persistent_workers"):
                if getattr(self, name):
                    raise SettingError(
                        f"{name} needs worker processes, but workers=0: "
                        f"set workers to 1 or more, or leave {name} out."
                    )

    def changes(self) -> dict[str, Any]:
        """The fields that are set, in the order of the record."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary with only the fields that are set."""
        return self.changes()

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Settings":
        """The record that :meth:`to_json` wrote; an unknown name is an error."""
        known = {f.name for f in fields(cls)}
        for name in values:
            if name not in known:
                raise SettingError(
                    f"unknown setting {name!r}; known are {', '.join(sorted(known))}."
                )
        return cls(**values)

    def __str__(self) -> str:
        changed = self.changes()
        if not changed:
            return "as it is"
        return ", ".join(f"{name}={value}" for name, value in changed.items())


_LEAST = {"batch_size": 1, "accumulation": 1, "workers": 0, "prefetch_factor": 1}
_SWITCHES = ("pin_memory", "persistent_workers", "non_blocking", "compile", "channels_last")


@dataclass(frozen=True, kw_only=True)
class Record:
    """What torch.profiler records beside operators and kernels; each costs time and disk."""

    shapes: bool = True
    stacks: bool = False
    memory: bool = False
    modules: bool = False

    def to_json(self) -> dict[str, bool]:
        """A plain dictionary of the four choices."""
        return {f.name: getattr(self, f.name) for f in fields(self)}
