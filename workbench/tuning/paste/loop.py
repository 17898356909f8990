"""The training loop in plain torch, with what surrounds forward, backward and update."""

from collections.abc import Mapping, Sequence
from typing import Any

from workbench.settings import Settings

_KERNELS = {
    "flash": "FLASH_ATTENTION",
    "efficient": "EFFICIENT_ATTENTION",
    "cudnn": "CUDNN_ATTENTION",
    "math": "MATH",
}
_DTYPES = {"bf16": "bfloat16", "fp16": "float16"}


def loop_lines(best: Settings, look: Mapping[str, Any]) -> list[str]:
    """The loop, as short as the settings allow."""
    effective = look["effective"]
    kind = str(effective.get("step", "training"))
    device = str(best.device or effective.get("device") or "cpu")
    if kind.startswith("own step"):
        body = _own_step(best, device)
    elif kind == "inference":
        body = _inference(best, look, device)
    else:
        body = _training(best, look, device)
    if best.attention is not None:
        kernel = f"with sdpa_kernel(SDPBackend.{_KERNELS[best.attention]}):"
        body = [kernel, *_in(body)]
    place = _place(best, device)
    batch = [_placed(look)] if place and not kind.startswith("own step") else []
    if place and kind.startswith("own step"):
        batch = ["# Bring the tensors of the batch to the model with place(tensor)."]
    scaler = _scaler(best, device)
    return [*place, *scaler, "# The loop.", "for batch in loader:", *_in([*batch, *body])]


def _in(lines: Sequence[str]) -> list[str]:
    return [f"    {line}" if line else "" for line in lines]


def _place(best: Settings, device: str) -> list[str]:
    """A function that brings one tensor of a batch to the model; nothing where none is needed."""
    lines: list[str] = []
    if best.device is not None or not device.startswith("cpu"):
        said = ", non_blocking=True" if best.non_blocking else ""
        lines.append(f'    tensor = tensor.to("{device}"{said})')
    if best.precision == "bf16_pure":
        lines.append(
            "    tensor = tensor.to(torch.bfloat16) if tensor.is_floating_point() else tensor"
        )
    if best.channels_last:
        lines += [
            "    if tensor.dim() == 4 and tensor.is_floating_point():",
            "        tensor = tensor.contiguous(memory_format=torch.channels_last)",
        ]
    return ["def place(tensor):", *lines, "    return tensor", "", ""] if lines else []


def _placed(look: Mapping[str, Any]) -> str:
    if look.get("batch_kind") == "mapping":
        return "batch = {name: place(tensor) for name, tensor in batch.items()}"
    if look.get("batch_kind") == "sequence":
        return "batch = [place(tensor) for tensor in batch]"
    return "batch = place(batch)"


def _scaler(best: Settings, device: str) -> list[str]:
    if best.precision != "fp16":
        return []
    start = "" if best.loss_scale is None else f", init_scale={best.loss_scale}"
    return [f'scaler = torch.amp.GradScaler("{device.partition(":")[0]}"{start})', ""]


def _region(best: Settings, device: str, *, whole_step: bool = False) -> str | None:
    """The line that opens autocast; ``None`` where the user's own stays."""
    dtype = _DTYPES.get(best.precision or "")
    if dtype is None:
        if best.precision in {"fp32", "tf32"}:
            return f'with torch.autocast("{device.partition(":")[0]}", enabled=False):'
        return None
    cache = "" if best.autocast_cache is None else f", cache_enabled={best.autocast_cache}"
    if whole_step:
        cache = ", cache_enabled=False"
    return f'with torch.autocast("{device.partition(":")[0]}", dtype=torch.{dtype}{cache}):'


def _under(region: str | None, lines: Sequence[str]) -> list[str]:
    return list(lines) if region is None else [region, *_in(lines)]


def _own_step(best: Settings, device: str) -> list[str]:
    said = []
    if best.precision == "fp16":
        said.append(
            "# In your step: scaler.scale(loss).backward(), scaler.step(optimizer), and at its end "
            "scaler.update()."
        )
    if best.clip_norm is not None:
        said.append(
            "# In your step, before optimizer.step(): "
            f"torch.nn.utils.clip_grad_norm_(model.parameters(), {best.clip_norm})."
        )
    if best.set_to_none is not None:
        said.append(f"# In your step: optimizer.zero_grad(set_to_none={best.set_to_none}).")
    if best.accumulation is not None:
        said.append(
            f"# In your step: cut the batch into {best.accumulation} parts, each with its own "
            "backward, its loss times its share of the samples."
        )
    if best.non_blocking:
        said.append("# In your step: batch.to(device, non_blocking=True).")
    call = "step(model, batch)  # your own"
    return [*said, *_under(_region(best, device, whole_step=True), [call])]


def _inference(best: Settings, look: Mapping[str, Any], device: str) -> list[str]:
    call = {
        "mapping": "output = model(**batch)",
        "sequence": "output = model(*batch[:-1])  # without the target; all of it if it has none",
    }.get(str(look.get("batch_kind")), "output = model(batch)")
    return ["with torch.no_grad():", *_in(_under(_region(best, device), [call]))]


def _training(best: Settings, look: Mapping[str, Any], device: str) -> list[str]:
    effective = look["effective"]
    optimizers = list(effective.get("optimizers") or ())
    each = [] if not optimizers else ["for optimizer in optimizers:"] if optimizers[1:] else [""]
    none = "" if best.set_to_none is None else f"set_to_none={best.set_to_none}"
    zero = _each(each, f"optimizer.zero_grad({none})") or [f"model.zero_grad({none})"]
    forward = _under(_region(best, device), [_loss(look)])
    backward = "loss.backward()" if best.precision != "fp16" else "scaler.scale(loss).backward()"
    passes = [*forward, backward]
    if best.accumulation is not None and best.accumulation > 1:
        passes = _accumulated(best, look, device, backward)
    return [*zero, *passes, *_update(best, effective, each)]


def _loss(look: Mapping[str, Any]) -> str:
    if look.get("batch_kind") == "mapping":
        own = not look.get("has_loss", True)
        return "loss = model(**batch).loss" if own else "loss = loss_fn(model(**batch), batch)"
    return "loss = loss_fn(model(*batch[:-1]), batch[-1])"


def _accumulated(best: Settings, look: Mapping[str, Any], device: str, backward: str) -> list[str]:
    """Forward and backward of each part of a batch."""
    count = best.accumulation
    if look.get("batch_kind") == "mapping":
        parts = [
            f"chunks = zip(*(tensor.chunk({count}) for tensor in batch.values()))",
            "parts = [dict(zip(batch, chunk)) for chunk in chunks]",
        ]
        share = "len(next(iter(part.values()))) / len(next(iter(batch.values())))"
    else:
        parts = [f"parts = list(zip(*(tensor.chunk({count}) for tensor in batch)))"]
        share = "len(part[0]) / len(batch[0])"
    loss = _loss(look).replace("batch", "part")
    inner = [*_under(_region(best, device), [f"{loss}", f"loss = loss * ({share})"]), backward]
    return [*parts, "for part in parts:", *_in(inner)]


def _update(best: Settings, effective: Mapping[str, Any], each: Sequence[str]) -> list[str]:
    """Clip, step, and let the schedule go on."""
    lines: list[str] = []
    scaled = best.precision == "fp16"
    if best.clip_norm is not None:
        if scaled:
            lines += _each(each, "scaler.unscale_(optimizer)")
        lines.append(f"torch.nn.utils.clip_grad_norm_(model.parameters(), {best.clip_norm})")
    lines += _each(each, "scaler.step(optimizer)" if scaled else "optimizer.step()")
    lines += ["scaler.update()"] if scaled else []
    schedulers = list(effective.get("schedulers") or ())
    if schedulers:
        lines += (
            ["for scheduler in schedulers:", "    scheduler.step()"]
            if schedulers[1:]
            else ["scheduler.step()"]
        )
    return lines


def _each(each: Sequence[str], line: str) -> list[str]:
    """The line for the one optimizer, or in a loop over several; nothing without any."""
    if not each:
        return []
    return [line] if each[0] == "" else [each[0], f"    {line}"]
