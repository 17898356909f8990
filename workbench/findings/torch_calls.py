"""What a Settings change is in torch's own calls: for loops that Settings do not reach."""

import re
from collections.abc import Mapping
from typing import Any

_OF_LOADER = {
    "batch_size": "batch_size",
    "workers": "num_workers",
    "prefetch_factor": "prefetch_factor",
    "pin_memory": "pin_memory",
    "persistent_workers": "persistent_workers",
}
_RECORD = re.compile(
    r"Record\((stacks|shapes|memory)=True\)(?:, or torch\.profiler with \w+=True)?"
)
_OF_PROFILER = {"stacks": "with_stack", "shapes": "record_shapes", "memory": "profile_memory"}
_SWITCH = re.compile(r"\b(workers)=(\d+)")
"""The one name that is not torch's own: the others stand in advice as DataLoader takes them."""
_ALONE = {
    "compile": "torch.compile(model)",
    "non_blocking": "tensor.to(device, non_blocking=True)",
    "channels_last": "model.to(memory_format=torch.channels_last)",
    "set_to_none": "optimizer.zero_grad(set_to_none=True)",
    "compile_dynamic": "torch.compile(model, dynamic=True)",
    "batched_fetch": "dataset.__getitems__(indices)",
    "autocast_cache": "torch.autocast({device!r}, cache_enabled=True)",
    "cuda_graphs": "torch.cuda.make_graphed_callables(model, samples)",
}
_BY_VALUE = {
    ("precision", "bf16"): "torch.autocast({device!r}, dtype=torch.bfloat16)",
    ("precision", "fp16"): (
        "torch.autocast({device!r}, dtype=torch.float16) with torch.amp.GradScaler({device!r})"
    ),
    ("precision", "fp32"): "torch.autocast({device!r}, enabled=False)",
    ("precision", "tf32"): 'torch.set_float32_matmul_precision("high")',
    ("compile", "reduce-overhead"): 'torch.compile(model, mode="reduce-overhead")',
    ("compile", "max-autotune"): 'torch.compile(model, mode="max-autotune")',
    ("compile", "default"): "torch.compile(model)",
    ("cudnn_benchmark", False): "torch.backends.cudnn.benchmark = False",
    ("matmul_precision", "high"): 'torch.set_float32_matmul_precision("high")',
    ("optimizer", "fused"): "fused=True for the optimizer",
    ("optimizer", "foreach"): "foreach=True for the optimizer",
    ("worker_threads", 1): "torch.set_num_threads(1) in worker_init_fn",
    ("parallel", "ddp"): "torch.nn.parallel.DistributedDataParallel(model)",
    ("autocast_cache", False): "torch.autocast({device!r}, cache_enabled=False)",
}


def torch_calls(setting: Mapping[str, Any] | None, *, device: str = "cpu") -> str | None:
    """The calls in words, such as ``DataLoader(num_workers=2)``; ``None`` where one is unknown.

    Args:
        setting: A Settings change, as its JSON.
        device: The type of device that the loop runs on, as torch names it.
    """
    if not setting:
        return None
    told = {_OF_LOADER[name]: value for name, value in setting.items() if name in _OF_LOADER}
    made = []
    if told:
        inside = ", ".join(f"{name}={value!r}" for name, value in told.items())
        made.append(f"DataLoader({inside})")
    for name, value in setting.items():
        if name in _OF_LOADER or (name == "compile" and "compile_dynamic" in setting):
            continue
        if name == "precision" and "loss_scale" in setting:
            continue
        call = _ALONE.get(name) if value is True else _BY_VALUE.get((name, value))
        if name == "loss_scale":
            call = f"torch.amp.GradScaler({{device!r}}, init_scale={value:g})"
        if call is None:
            return None
        made.append(call.format(device=device))
    return " and ".join(made)


def in_torch_words(text: str) -> str:
    """A sentence of advice with torch's own calls where it names a switch that torch lacks."""
    return _SWITCH.sub(lambda found: f"DataLoader({_OF_LOADER[found[1]]}={found[2]})", text)


def in_profiler_words(text: str) -> str:
    """A sentence with torch.profiler's own options where it names ours.

    For traces from elsewhere: whoever recorded them has no Record to set.
    """
    return _RECORD.sub(lambda found: f"torch.profiler.profile({_OF_PROFILER[found[1]]}=True)", text)


def device_type(device: str) -> str:
    """How torch names the type of a device that a trace names; of AMD's it says ``cuda``."""
    kind = device.partition(":")[0]
    return {"hip": "cuda", "tpu": "xla", "": "cpu"}.get(kind, kind)
