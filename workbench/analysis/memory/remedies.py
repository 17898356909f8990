"""What would need less memory, and how many bytes less at most."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.analysis.modules import BETWEEN
from workbench.units import bytes_text

LEAST_SHARE = 0.02
"""Own choice: what saves less of the memory in use is not named."""
_NUMBER = re.compile(r"_\d+$")
_FULL = (None, "fp32", "tf32")


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """One thing to change; bytes are a bound, several together save less than their sum."""

    what: str
    saves_bytes: int
    setting: Mapping[str, Any] | None = None
    """As a setting, where a switch exists."""


def remedies(
    by_category: Mapping[str, int],
    *,
    effective: Mapping[str, Any] | None = None,
    blocks: tuple[str, int, int] | None = None,
    fragmented_bytes: int = 0,
) -> tuple[Remedy, ...]:
    """The remedies for one memory, the largest saving first.

    Args:
        by_category: Bytes in use by who holds them.
        effective: What is in force, where it is known: batch_size, precision and so on.
        blocks: From :func:`repeated_blocks`.
        fragmented_bytes: Held of the driver and in use by nobody, where a request failed.
    """
    known = effective or {}
    moving = sum(by_category.get(name, 0) for name in ("activations", "temporary", "input"))
    kept = sum(by_category.get(name, 0) for name in ("weights", "gradients", "optimizer"))
    found = [*_of_batch(moving, known), *_of_activations(by_category, known, blocks)]
    if kept:
        found.append(
            Remedy(
                what="Spread weights, gradients and optimizer state over two ranks (FSDP); over n "
                "ranks each holds an n-th",
                saves_bytes=kept // 2,
            )
        )
    if by_category.get("optimizer", 0):
        found.append(
            Remedy(
                what="An optimizer that keeps one number a weight (SGD with momentum) instead of "
                "Adam's two; it trains differently",
                saves_bytes=by_category["optimizer"] // 2,
            )
        )
    if fragmented_bytes:
        found.append(
            Remedy(
                what="PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True before the first use of the "
                "device, so that free pieces can be joined",
                saves_bytes=fragmented_bytes,
            )
        )
    least = LEAST_SHARE * max(sum(by_category.values()) + fragmented_bytes, 1)
    return tuple(
        sorted(
            (each for each in found if each.saves_bytes >= least),
            key=lambda each: -each.saves_bytes,
        )
    )


def _of_batch(moving: int, known: Mapping[str, Any]) -> list[Remedy]:
    """Half a batch keeps half of what grows with it; accumulation keeps the mathematics."""
    batch = known.get("batch_size")
    if not moving or (isinstance(batch, int) and batch < 2):
        return []
    half: dict[str, Any] | None = None
    what = "Half the batch size, with two batches accumulated where the optimizer shall see as many"
    if isinstance(batch, int):
        steps = known.get("accumulation") or 1
        half = {"batch_size": batch // 2, "accumulation": 2 * steps}
        what += f" ({batch} → {batch // 2})"
    return [Remedy(what=what, saves_bytes=moving // 2, setting=half)]


def _of_activations(
    by_category: Mapping[str, int],
    known: Mapping[str, Any],
    blocks: tuple[str, int, int] | None,
) -> list[Remedy]:
    found = []
    if blocks is not None:
        kind, count, size = blocks
        found.append(
            Remedy(
                what=f"Checkpoint the {count} blocks {kind}: keep only what goes in, compute the "
                "rest again in backward (about a third more work)",
                saves_bytes=size - size // count,
                setting={"checkpointing": (kind,)},
            )
        )
    held = by_category.get("activations", 0)
    if held and known and known.get("precision") in _FULL:
        found.append(
            Remedy(
                what="bf16 mixed precision: activations of products take two bytes, not four",
                saves_bytes=held // 2,
                setting={"precision": "bf16"},
            )
        )
    return found


def repeated_blocks(modules: Sequence[tuple[str, int]]) -> tuple[str, int, int] | None:
    """The class of modules that comes several times and holds most: name, how many, bytes.

    Of classes inside each other the outer one holds at least as much and is taken.

    Args:
        modules: Path (as :mod:`analysis.modules` writes it) and bytes of each.
    """
    sums: dict[str, dict[str, int]] = {}
    depth: dict[str, int] = {}
    for path, size in modules:
        parts = path.split(BETWEEN)
        for level, part in enumerate(parts):
            kind = _NUMBER.sub("", part)
            place = BETWEEN.join(parts[: level + 1])
            sums.setdefault(kind, {}).setdefault(place, 0)
            sums[kind][place] += size
            depth[kind] = min(depth.get(kind, level), level)
    several = [
        (kind, len(each), sum(each.values())) for kind, each in sums.items() if len(each) > 1
    ]
    several = [each for each in several if each[2] > 0 and each[0]]
    if not several:
        return None
    return max(several, key=lambda each: (each[2] - each[2] // each[1], -depth[each[0]]))


def remedies_text(found: Sequence[Remedy], most: int = 4) -> str:
    """The remedies as sentences."""
    return " ".join(
        f"{each.what}: up to {bytes_text(each.saves_bytes)} less."
        + (f" {setting_text(each.setting)}" if each.setting else "")
        for each in found[:most]
    )


def setting_text(setting: Mapping[str, Any]) -> str:
    """A setting as it is typed."""
    return f"Settings({', '.join(f'{name}={value!r}' for name, value in setting.items())})"
