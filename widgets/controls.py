"""One native form control for each field of ``Settings``, as plain data for the page."""

from dataclasses import dataclass, fields
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from workbench.settings import Settings

Kind = Literal["choice", "switch", "number", "decimal", "text", "names", "numbers"]

_WORDS = {
    "precision": ("Precision", "autocast type, or bf16 throughout; fp32 also turns TF32 off"),
    "matmul_precision": ("fp32 products", "high allows TF32 in them, medium bf16"),
    "autocast_cache": ("Autocast cache", "keep casts of weights within a forward pass"),
    "loss_scale": ("First loss scale", "what fp16 gradient scaling starts with; 65536 by itself"),
    "compile": ("torch.compile", "the first steps then take longer"),
    "compile_dynamic": ("Dynamic shapes", "one compilation for shapes that change"),
    "compile_fullgraph": ("Full graph", "a graph break is an error"),
    "cudnn_benchmark": ("cuDNN benchmark", "measures its convolutions; for batches of one size"),
    "cuda_graphs": ("CUDA graphs", "replay the kernels as one launch; for batches of one size"),
    "channels_last": ("Channels last", "memory order of 4-d weights and inputs"),
    "attention": ("Attention kernel", "which scaled_dot_product_attention may use"),
    "checkpointing": ("Activation checkpointing", "module types or names, with commas between"),
    "accumulation": ("Gradient accumulation", "micro-batches per optimizer step"),
    "clip_norm": (
        "Clip gradient norm",
        "limit for all gradients together; it changes the training",
    ),
    "optimizer": ("Optimizer loop", "many tensors per kernel, one kernel, or one by one"),
    "set_to_none": ("zero_grad to None", "off fills gradients with zeros instead"),
    "batch_size": ("Batch size", "samples per batch; the learning rate stays"),
    "workers": ("Loader workers", "processes; 0 loads in the training process"),
    "prefetch_factor": ("Prefetch factor", "batches that each worker holds ready"),
    "pin_memory": ("Pinned memory", "page-locked, copies faster to a device"),
    "persistent_workers": ("Persistent workers", "kept alive between epochs"),
    "non_blocking": ("Non-blocking copies", "overlap with the host; need pinned memory"),
    "drop_last": ("Drop last batch", "when it is smaller than the others"),
    "batched_fetch": ("Batched fetch", "ask the data set for a whole batch at once"),
    "in_order": ("Batches in order", "off gives them as workers finish"),
    "multiprocessing_context": ("Start of workers", "fork shares memory, the others start fresh"),
    "threads": ("Threads", "that one operator may use on the CPU"),
    "interop_threads": ("Inter-op threads", "fixed once in a process"),
    "worker_threads": ("Threads per worker", "that one operator may use in a worker"),
    "cpu_affinity": ("CPU affinity", "CPU numbers, with commas between"),
    "device": ("Device", "cpu, cuda:0, xpu or mps"),
    "parallel": ("Parallelism", "one process, or ranks that take over and hand back"),
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
    kept = [option for option in get_args(hint) if option is not NoneType]
    literals = [option for option in kept if get_origin(option) is Literal]
    words = tuple(word for literal in literals for word in get_args(literal))
    if words:
        # Beside words, a switch says only whether at all: which words mean on.
        choices = ("off", *words) if bool in kept else words
        return Control(name=name, label=label, help=purpose, kind="choice", choices=choices)
    return Control(name=name, label=label, help=purpose, kind=_KINDS[kept[0]])


_KINDS: dict[Any, Kind] = {
    bool: "switch",
    int: "number",
    float: "decimal",
    str: "text",
    tuple[str, ...]: "names",
    tuple[int, ...]: "numbers",
}
