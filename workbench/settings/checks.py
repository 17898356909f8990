"""What a value of a setting may be, and which values contradict each other."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from workbench.errors import SettingError
from workbench.settings.parallel import Parallel
from workbench.settings.values import above_zero, members, names, short, switch, whole, word

_WORDS = {
    "precision": ("fp32", "tf32", "bf16", "fp16", "bf16_pure", "fp8"),
    "matmul_precision": ("highest", "high", "medium"),
    "attention": ("flash", "efficient", "cudnn", "math"),
    "optimizer": ("foreach", "fused", "single"),
    "multiprocessing_context": ("fork", "forkserver", "spawn"),
}
_COMPILE_MODES = ("default", "reduce-overhead", "max-autotune")
_LEAST = {
    "batch_size": 1,
    "accumulation": 1,
    "workers": 0,
    "prefetch_factor": 1,
    "threads": 1,
    "interop_threads": 1,
    "worker_threads": 1,
}
_ABOVE_ZERO = ("loss_scale", "clip_norm")
_SWITCHES = (
    *("autocast_cache", "compile_dynamic", "compile_fullgraph", "cudnn_benchmark", "cuda_graphs"),
    *("channels_last", "set_to_none", "pin_memory", "persistent_workers", "non_blocking"),
    *("drop_last", "batched_fetch", "in_order"),
)
_DEVICE = re.compile(r"(cpu|(cuda|xpu|mps)(:\d+)?)")

Check = Callable[[str, Any], Any]


def checked(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of all settings, with lists as tuples and numbers as their own type.

    Raises:
        SettingError: When a value is of the wrong kind or range, or two contradict each other.
    """
    given = {name: value for name, value in values.items() if value is not None}
    found = {name: _CHECKS[name](name, value) for name, value in given.items()}
    _check_numbers({**values, **found})
    _check_compilation({**values, **found})
    _check_workers({**values, **found})
    return found


def _word(name: str, value: Any) -> str:
    return word(name, value, _WORDS[name])


def _whole(name: str, value: Any) -> int:
    return whole(name, value, _LEAST[name])


def _compile(name: str, value: Any) -> Any:
    if not isinstance(value, bool) and not (isinstance(value, str) and value in _COMPILE_MODES):
        allowed = ", ".join(map(repr, _COMPILE_MODES))
        raise SettingError(f"{name}={short(value)} must be True, False, {allowed} or None.")
    return value


def _names(name: str, value: Any) -> tuple[str, ...]:
    return names(name, value, "module types or names")


def _cpus(name: str, value: Any) -> tuple[int, ...]:
    whole = isinstance(value, tuple | list) and all(
        isinstance(v, int) and not isinstance(v, bool) and v >= 0 for v in value
    )
    if not whole:
        raise SettingError(f"{name}={short(value)} must be a tuple of CPU numbers, such as (0, 1).")
    return members(name, value)


def _device(name: str, value: Any) -> Any:
    if not isinstance(value, str) or not _DEVICE.fullmatch(value):
        raise SettingError(f"{name}={short(value)} is unknown; use cpu, cuda, cuda:N, xpu or mps.")
    return value


def _parallel(_: str, value: Any) -> Parallel:
    return Parallel.from_json(value)


_CHECKS: dict[str, Check] = {
    **dict.fromkeys(_WORDS, _word),
    **dict.fromkeys(_LEAST, _whole),
    **dict.fromkeys(_ABOVE_ZERO, above_zero),
    **dict.fromkeys(_SWITCHES, switch),
    "compile": _compile,
    "checkpointing": _names,
    "cpu_affinity": _cpus,
    "device": _device,
    "parallel": _parallel,
}


def _check_numbers(values: Mapping[str, Any]) -> None:
    precision, products = values["precision"], values["matmul_precision"]
    if (precision == "fp32" and products in ("high", "medium")) or (
        precision == "tf32" and products == "highest"
    ):
        raise SettingError(
            f"precision={precision!r} and matmul_precision={products!r} contradict each other: "
            "leave one of them out."
        )
    if values["autocast_cache"] and precision in ("fp32", "tf32", "bf16_pure"):
        raise SettingError(
            f"autocast_cache=True needs autocast, which precision={precision!r} does not use: "
            "set precision to 'bf16' or 'fp16', or leave autocast_cache out."
        )
    if values["loss_scale"] is not None and precision != "fp16":
        raise SettingError(
            f"loss_scale={values['loss_scale']:g} needs the gradient scaling of precision='fp16': "
            "set it too, or leave loss_scale out."
        )


def _check_compilation(values: Mapping[str, Any]) -> None:
    if not values["compile"]:
        for name in ("compile_dynamic", "compile_fullgraph"):
            # A graph that may break is what plain code is; dynamic=False is a choice by itself.
            if values[name] or (name == "compile_dynamic" and values[name] is not None):
                raise SettingError(
                    f"{name} acts on a model that is compiled for the run: "
                    f"set compile=True too, or leave {name} out."
                )
    if values["compile"] == "reduce-overhead" and values["cuda_graphs"] is False:
        raise SettingError(
            "compile='reduce-overhead' means CUDA graphs, and cuda_graphs=False forbids them: "
            "use compile='default', or leave cuda_graphs out."
        )


def asked_of_workers(values: Mapping[str, Any]) -> tuple[str, ...]:
    """The settings among ``values`` that can act only in or on worker processes."""
    names = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "worker_threads")
    asked = tuple(name for name in names if values.get(name))
    # A loader without workers gives its batches in order in any case.
    return (*asked, "in_order") if values.get("in_order") is False else asked


def _check_workers(values: Mapping[str, Any]) -> None:
    if values["workers"] == 0:
        for name in asked_of_workers(values):
            raise SettingError(
                f"{name} needs worker processes, but workers=0: "
                f"set workers to 1 or more, or leave {name} out."
            )
    if values["non_blocking"] and values["pin_memory"] is False:
        raise SettingError(
            "non_blocking=True needs pinned memory, but pin_memory=False: copies from pageable "
            "memory block in any case. Set pin_memory=True, or leave one of them out."
        )
