"""One native form control for each field of ``Settings``, as plain data for the page."""

from dataclasses import dataclass, fields
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from workbench.settings import Settings

Kind = Literal["choice", "switch", "number"]

_WORDS = {
    "precision": ("Precision", "autocast type; fp32 also turns TF32 off"),
    "batch_size": ("Batch size", "samples per batch"),
    "accumulation": ("Gradient accumulation", "micro-batches per optimizer step"),
    "workers": ("Loader workers", "processes; 0 loads in the training process"),
    "prefetch_factor": ("Prefetch factor", "batches that each worker holds ready"),
    "pin_memory": ("Pinned memory", "page-locked, copies faster to a device"),
    "persistent_workers": ("Persistent workers", "kept alive between epochs"),
    "non_blocking": ("Non-blocking copies", "overlap with the host; need pinned memory"),
    "compile": ("torch.compile", "the first steps then take longer"),
    "channels_last": ("Channels last", "memory order of 4-d weights and inputs"),
}


@dataclass(frozen=True, kw_only=True)
class Control:
    """What the page needs to draw one setting."""

    name: str
    label: str
    help: str
    kind: Kind
    choices: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The control as a plain dictionary."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def controls() -> tuple[Control, ...]:
    """A control for every field of :class:`~workbench.settings.Settings`, in its order."""
    hints = get_type_hints(Settings)
    return tuple(_control(field.name, hints[field.name]) for field in fields(Settings))


def _control(name: str, hint: Any) -> Control:
    label, purpose = _WORDS.get(name, (name.replace("_", " ").capitalize(), ""))
    (kept,) = (option for option in get_args(hint) if option is not NoneType)
    if get_origin(kept) is Literal:
        return Control(name=name, label=label, help=purpose, kind="choice", choices=get_args(kept))
    kinds: dict[type, Kind] = {bool: "switch", int: "number"}
    return Control(name=name, label=label, help=purpose, kind=kinds[kept])
