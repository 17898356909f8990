"""Model and optimizer in plain torch."""

from collections.abc import Mapping
from typing import Any

from workbench.settings import Settings


def model_lines(best: Settings, effective: Mapping[str, Any]) -> list[str]:
    """What is done to the model after it was made, in the order in which it must be done."""
    del effective
    lines: list[str] = []
    if best.device is not None:
        lines.append(f'model = model.to("{best.device}")  # before the optimizer is made')
    if best.precision == "bf16_pure":
        lines.append("model = model.to(torch.bfloat16)  # before the optimizer is made")
    if best.precision == "fp8":
        lines.append("convert_to_float8_training(model)  # linear layers in fp8, by torchao")
    if best.channels_last is not None:
        order = "channels_last" if best.channels_last else "contiguous_format"
        lines.append(f"model = model.to(memory_format=torch.{order})")
    if best.checkpointing is not None:
        lines += _checkpointed(best.checkpointing)
    lines += _compiled(best)
    return ["# The model, after it is made.", *lines] if lines else []


def _checkpointed(names: tuple[str, ...]) -> list[str]:
    chosen = "{" + ", ".join(f'"{_quoted(name)}"' for name in names) + "}"
    return [
        "for path, module in model.named_modules():",
        f"    if path in {chosen} or type(module).__name__ in {chosen}:",
        "        module.forward = functools.partial(",
        "            checkpoint, module.forward, use_reentrant=False",
        "        )",
    ]


def _quoted(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"')


def _compiled(best: Settings) -> list[str]:
    if best.compile is False:
        return ['torch.compiler.set_stance("force_eager")  # what is compiled runs as plain code']
    if not best.compile:
        if best.cuda_graphs:
            return [
                "# Record the model as a CUDA graph: sample is one input batch on the device.",
                "model = torch.cuda.make_graphed_callables(model, (sample,))",
            ]
        return []
    from workbench.workload.compilation import compile_options

    options = {**compile_options(best)}
    options.pop("isolate_recompiles", None)
    named = "".join(f", {name}={_value(value)}" for name, value in options.items())
    return [f"model = torch.compile(model{named})"]


def _value(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def optimizer_lines(best: Settings, effective: Mapping[str, Any]) -> list[str]:
    """How the optimizer goes over its parameters, before its first step."""
    if best.optimizer is None:
        return []
    several = len(effective.get("optimizers") or ()) > 1
    flags = [f'    group["{name}"] = {best.optimizer == name}' for name in ("foreach", "fused")]
    given = f"{best.optimizer}=True" if best.optimizer != "single" else "foreach=False"
    lines = [
        f"# The same as {given} where the optimizer is made; before its first step.",
        "for group in optimizer.param_groups:",
        *flags,
    ]
    if not several:
        return lines
    inner = [f"    {line}" for line in lines[1:]]
    return [lines[0], "for optimizer in optimizers:", *inner]
