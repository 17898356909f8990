"""Which switch stands in which group, and settings that often go together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from workbench.settings import Settings
from workbench.widgets.controls import controls
from workbench.widgets.words import word

PARALLEL = (
    "ddp, fsdp, tp and pp start processes, which go on from the next step with weights, optimizer "
    "and place in the epoch, and hand them back. "
    "wb.profile(work, wb.Settings(parallel=...)) records all ranks into one Run."
)


@dataclass(frozen=True, kw_only=True)
class Group:
    """Switches that belong together."""

    name: str
    fields: tuple[str, ...]
    note: str | None = None


GROUPS = (
    Group(
        name="Precision", fields=("precision", "matmul_precision", "autocast_cache", "loss_scale")
    ),
    Group(
        name="Compile and layout",
        fields=(
            *("compile", "compile_dynamic", "compile_fullgraph", "cuda_graphs"),
            *("cudnn_benchmark", "channels_last", "attention", "checkpointing"),
        ),
    ),
    Group(name="Batch and accumulation", fields=("batch_size", "accumulation", "drop_last")),
    Group(
        name="Loader",
        fields=(
            *("workers", "prefetch_factor", "persistent_workers", "pin_memory", "non_blocking"),
            *("batched_fetch", "in_order", "multiprocessing_context", "worker_threads"),
        ),
    ),
    Group(
        name="Parallelism",
        fields=("parallel", "threads", "interop_threads", "cpu_affinity", "device"),
        note=PARALLEL,
    ),
    Group(name="Optimizer", fields=("optimizer", "set_to_none", "clip_norm")),
)


class OfferLike(Protocol):
    """What is said of some values of a setting (``workload.capability.Offer``)."""

    @property
    def field(self) -> str:
        """The setting."""

    @property
    def values(self) -> tuple[Any, ...]:
        """Its values that this is about."""

    @property
    def state(self) -> str:
        """``possible``, ``refused`` or ``harmful``."""

    @property
    def reason(self) -> str | None:
        """Why, or what must be known."""


def grouped(
    offers: Sequence[OfferLike] | None, effective: Mapping[str, Any], cpus: int
) -> dict[str, Any]:
    """The switches by group with what each can do here, for the page.

    Args:
        offers: What is possible; ``None`` while that is not known yet.
        effective: Values that the work has by itself, by the name of the setting.
        cpus: Processors that this process may use.
    """
    known: dict[str, list[OfferLike]] = {}
    for offer in offers or ():
        known.setdefault(offer.field, []).append(offer)
    drawn = {control.name: control.to_json() for control in controls()}
    groups = []
    for group in GROUPS:
        rows = [
            {**drawn[name], **judged(known.get(name, ())), "yours": _yours(effective.get(name))}
            for name in group.fields
        ]
        groups.append({"name": group.name, "note": group.note, "rows": rows})
    return {
        "ready": offers is not None,
        "groups": groups,
        "presets": [_preset(*each, known) for each in presets(cpus)],
    }


def judged(offers: Sequence[OfferLike]) -> dict[str, Any]:
    """What the offers of one setting say: of each value, and of all together."""
    values = {
        _choice(offer.field, value): {"state": offer.state, "reason": offer.reason}
        for offer in offers
        for value in offer.values
    }
    reasons = [offer.reason or "not possible here" for offer in offers if offer.state == "refused"]
    every = bool(offers) and len(reasons) == len(offers)
    return {"values": values, "refused": reasons[0] if every else None}


def presets(cpus: int) -> tuple[tuple[str, str, Settings], ...]:
    """Name, purpose and settings of what is often tried together."""
    workers = max(1, min(4, cpus - 1))
    return (
        (
            "Feed the loader",
            "worker processes that stay, each with batches ready",
            Settings(workers=workers, persistent_workers=True, prefetch_factor=4),
        ),
        ("Half precision", "autocast in bf16", Settings(precision="bf16")),
        (
            "Fewer launches",
            "compiled model, one kernel for many parameters",
            Settings(compile=True, optimizer="foreach", set_to_none=True),
        ),
        (
            "Exact numbers",
            "fp32 throughout, batches in order",
            Settings(precision="fp32"),
        ),
    )


def _preset(
    name: str, purpose: str, settings: Settings, known: Mapping[str, list[OfferLike]]
) -> dict[str, Any]:
    """A preset without what cannot act here; refused where nothing is left of it."""
    kept, reasons = {}, []
    for field, value in settings.to_json().items():
        said = judged(known.get(field, ()))
        about = said["values"].get(_choice(field, value), {})
        reason = said["refused"] or (about.get("reason") if about.get("state") == "refused" else "")
        if reason:
            reasons.append(reason)
        else:
            kept[field] = value
    if "workers" not in kept:  # the others need them
        kept = {k: v for k, v in kept.items() if k not in ("persistent_workers", "prefetch_factor")}
    refused = None if kept else reasons[0]
    return {"name": name, "help": purpose, "values": kept, "refused": refused}


def _choice(field: str, value: Any) -> str:
    """A value as the page's control for it says it."""
    return "default" if field == "compile" and value is True else word(value)


def _yours(value: Any) -> str | None:
    return None if value is None else word(value)
