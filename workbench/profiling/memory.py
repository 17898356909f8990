"""Out of memory is a moment that is handled: named as what it is, with everything put back."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.settings import Settings
    from workbench.workload import Workload

_REMEDY = (
    "wb.profile put everything back. Try Settings(batch_size=...) smaller, "
    "Settings(accumulation=...), or a lower precision."
)
_UNITS = {"bytes": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SIZE = r"([\d.]+) (KiB|MiB|GiB|bytes)"
_ASKED = re.compile(rf"[Tt]ried to allocate {_SIZE}")
_HELD = re.compile(rf"{_SIZE} is allocated by PyTorch")
_UNUSED = re.compile(rf"{_SIZE} is reserved by PyTorch but unallocated")


@contextmanager
def explain_out_of_memory(
    work: "Workload | None" = None, settings: "Settings | None" = None
) -> Iterator[None]:
    """Add to an out-of-memory error what holds the memory and what to change, and let it through.

    Args:
        work: What ran; its model and optimizer tell what they hold.
        settings: What was in force.
    """
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        notes = getattr(error, "__notes__", ())
        if is_out_of_memory(error) and not any(_REMEDY in note for note in notes):
            told = _post_mortem(str(error), work, settings)
            error.add_note(f"{_REMEDY}{told}{_lines(error)}")
        raise


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory of the host or the device ran out."""
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error)
    return "can't allocate memory" in text or "out of memory" in text


def what_held(error: BaseException, work: "Workload | None", settings: "Settings | None") -> str:
    """What held the memory when it ran out, and what needs less: a sentence or two, or nothing."""
    return f"{_post_mortem(str(error), work, settings)}{_lines(error)}".strip()


def _lines(error: BaseException) -> str:
    """Who held most of the device's memory by line, where a history was recorded; else nothing."""
    from workbench.analysis.snapshots import read_snapshot
    from workbench.analysis.snapshots.history import history
    from workbench.analysis.snapshots.out_of_memory import post_mortems
    from workbench.analysis.snapshots.owners import owners_in_snapshot
    from workbench.errors import TraceError
    from workbench.recording.memory_history import CARRIED, current_history
    from workbench.units import bytes_text

    data = error.__dict__.pop(CARRIED, None) or current_history()
    if data is None:
        return ""
    try:
        snapshot = read_snapshot(data)
    except TraceError:  # of a release of torch that writes them otherwise
        return ""
    recorded, stacks = history(snapshot)
    owners = owners_in_snapshot(snapshot, recorded, stacks)
    failed = post_mortems(snapshot, recorded, owners)
    if not failed:
        return ""
    held = [
        f"{bytes_text(size)} {line} ({category})"
        for category, line, size in failed[-1].largest
        if line
    ]
    return f" Most was held by {'; '.join(held[:MOST_LINES])}." if held else ""


MOST_LINES = 3
"""Holders that a message names."""


def _post_mortem(text: str, work: "Workload | None", settings: "Settings | None") -> str:
    """What the model holds, what is left for activations, and what would need less."""
    from workbench.analysis.memory.remedies import remedies, remedies_text
    from workbench.units import bytes_text

    held = {} if work is None else _held_by(work)
    allocated, unused, asked = (_bytes(each, text) for each in (_HELD, _UNUSED, _ASKED))
    if allocated is not None:
        held["activations"] = max(allocated - sum(held.values()), 0)
    if not held:
        return ""
    known = {} if settings is None else dict(settings.changes())
    batch = known.get("batch_size") or getattr(work, "batch_size", None)
    fragmented = unused if unused and asked and unused >= asked else 0
    found = remedies(held, effective={**known, "batch_size": batch}, fragmented_bytes=fragmented)
    parts = [f"{bytes_text(size)} {name}" for name, size in held.items() if size]
    said = f" Held: {', '.join(parts)}" if parts else ""
    if asked is not None:
        said += f"; asked for {bytes_text(asked)} more"
    return f"{said}. {remedies_text(found)}".rstrip() if said else ""


def _held_by(work: "Workload") -> dict[str, int]:
    """Bytes of weights, gradients and optimizer state, as they are now."""
    import torch

    if not isinstance(work.model, torch.nn.Module):
        return {}
    weights = [*work.model.parameters(), *work.model.buffers()]
    gradients = [each.grad for each in work.model.parameters() if each.grad is not None]
    state = [
        value
        for optimizer in work.optimizers
        for each in optimizer.state.values()
        for value in each.values()
        if isinstance(value, torch.Tensor)
    ]
    trained = [each for each in work.model.parameters() if each.requires_grad]
    return {
        "weights": _total(weights),
        "gradients": _total(gradients) or (_total(trained) if work.optimizers else 0),
        "optimizer": _total(state),
    }


def _total(tensors: list[Any]) -> int:
    return sum(each.numel() * each.element_size() for each in tensors)


def _bytes(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    return None if found is None else int(float(found[1]) * _UNITS[found[2]])
