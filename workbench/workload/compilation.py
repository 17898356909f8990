"""torch.compile for a run: whether it can act here, and the compiled twin of the model."""

import importlib
import inspect
import os
import shutil
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import nn

from workbench.errors import SettingError
from workbench.settings import Settings
from workbench.workload.workload import Workload

_LIMITS = ("recompile limit", "recompile_limit", "cache_size_limit")
_MOST_BREAKS = 5
_TWINS: WeakKeyDictionary[Workload, dict[Settings, Any]] = WeakKeyDictionary()


def is_compiled(model: Any) -> bool:
    """Whether the model, or a part of it, runs through ``torch.compile`` already."""
    if not isinstance(model, nn.Module):
        return False
    return any(
        module.__dict__.get("_compiled_call_impl") is not None
        or "_orig_mod" in module.__dict__.get("_modules", ())
        for module in model.modules()
    )


def compiled(work: Workload, settings: Settings, device: torch.device) -> Any:
    """The compiled twin of the model, which itself is not changed.

    The same workload under the same settings gets the same twin again, and its compiled code.

    Raises:
        SettingError: When the model is compiled already, or the tool chain is not there.
    """
    twins = _TWINS.setdefault(work, {})
    if settings not in twins:
        twins[settings] = _compiled(work.model, settings, device)
    return twins[settings]


def forget_graphs(work: Workload, settings: Settings) -> None:
    """Let go of a twin whose CUDA graphs would hold memory that the next run is measured in."""
    if "mode" in compile_options(settings):
        _TWINS.get(work, {}).pop(settings, None)


def _compiled(model: Any, settings: Settings, device: torch.device) -> Any:
    asked = f"compile={settings.compile!r}"
    if is_compiled(model):
        raise SettingError(
            f"{asked} cannot act: the model (or a part of it) is compiled already. "
            "Use compile=False to see what compilation gains."
        )
    if isinstance(model, nn.DataParallel):
        raise SettingError(
            f"{asked} cannot act: DataParallel runs new copies of the model at every step, which "
            "would be compiled each time. Give the module inside it."
        )
    missing = _missing_tool(device)
    if missing is not None:
        raise SettingError(f"{asked} cannot act: {missing}.")
    with warnings.catch_warnings():
        # Importing the compiler warns of torch's own deprecated calls; as errors they would end it.
        warnings.simplefilter("ignore")
        importlib.import_module("torch._inductor.compile_fx")
    try:
        return torch.compile(model, **compile_options(settings))
    except RuntimeError as error:
        raise SettingError(f"{asked} cannot act on this model: {error}") from error


def compile_options(settings: Settings) -> dict[str, Any]:
    """What ``torch.compile`` is called with under these settings."""
    options: dict[str, Any] = {}
    if isinstance(settings.compile, str) and settings.compile != "default":
        options["mode"] = settings.compile
        if settings.compile == "max-autotune" and settings.cuda_graphs is False:
            options["mode"] = "max-autotune-no-cudagraphs"
    elif settings.cuda_graphs:
        options["mode"] = "reduce-overhead"  # which is the default mode with CUDA graphs
    if settings.compile_dynamic is not None:
        options["dynamic"] = settings.compile_dynamic
    if settings.compile_fullgraph:
        options["fullgraph"] = True
    if "isolate_recompiles" in inspect.signature(torch.compile).parameters:
        # Otherwise settings and the user's own compilations count together, and from the ninth
        # variant of a function on it would run as plain code.
        options["isolate_recompiles"] = True
    return options


def compiler_watch() -> Callable[[], list[str]]:
    """Start to watch the compiler; call the result for what it has told since, for people."""
    before = _breaks()

    def told() -> list[str]:
        since = {why: n - before.get(why, 0) for why, n in _breaks().items()}
        found = [(why, n) for why, n in since.items() if n > 0]
        limit = [why for why, _ in found if any(word in why for word in _LIMITS)]
        breaks = [f"{_short(why)} (× {n})" for why, n in found if why not in limit]
        notes = []
        if breaks:
            notes.append(
                f"torch.compile broke the graph, and what lies between ran as plain code: "
                f"{'; '.join(breaks[:_MOST_BREAKS])}"
            )
        if limit:
            notes.append(
                "torch.compile gave up on a function that it had to compile again too often, and "
                "ran it as plain code: compile_dynamic=True may help"
            )
        return notes

    return told


def _breaks() -> dict[str, int]:
    utils = sys.modules.get("torch._dynamo.utils")
    if utils is None:
        return {}
    found: dict[str, int] = {}
    for kind in ("graph_break", "unimplemented"):
        for why, count in utils.counters[kind].items():
            found[str(why)] = found.get(str(why), 0) + int(count)
    return found


def _short(why: str) -> str:
    lines = [line.strip() for line in why.splitlines() if line.strip()]
    return lines[0][:120] if lines else "no reason given"


@contextmanager
def without_new_compile_workers() -> Iterator[None]:
    """End the compiler's worker processes and threads after the block, unless already there."""
    keep_processes, keep_threads = _compile_workers()
    monitor = _progress_monitor()
    try:
        yield
    finally:
        if monitor is None and (begun := _progress_monitor()) is not None:
            begun.exit()
        processes, threads = _compile_workers()
        compiler = sys.modules.get(_COMPILER)
        if compiler is not None and processes and not keep_processes:
            compiler.shutdown_compile_workers()
        if compiler is not None and threads and not keep_threads:
            pool = compiler.AsyncCompile.pool
            pool().shutdown()
            pool.cache_clear()  # the next compilation makes a new one


_COMPILER = "torch._inductor.async_compile"


def _progress_monitor() -> Any:
    """The thread that tqdm keeps beside any bar, as the compiler draws one; ``None`` without it."""
    bars = sys.modules.get("tqdm")
    monitor = getattr(getattr(bars, "tqdm", None), "monitor", None)
    return monitor if monitor is not None and monitor.is_alive() else None


def _compile_workers() -> tuple[bool, bool]:
    """Whether the compiler holds a pool of processes, and one of threads."""
    compiler = sys.modules.get(_COMPILER)
    if compiler is None:
        return False, False
    pool = getattr(getattr(compiler, "AsyncCompile", None), "pool", None)
    made = getattr(pool, "cache_info", None)
    return len(getattr(compiler, "_pool_set", ())) > 0, made is not None and made().currsize > 0


def _missing_tool(device: torch.device) -> str | None:
    if device.type == "cuda":
        from torch.utils._triton import has_triton

        return None if has_triton() else "torch.compile needs Triton for this device"
    compiler = os.environ.get("CXX", "").split(" ")[0]
    if not any(shutil.which(name) for name in (compiler, "g++", "clang++", "c++", "cl") if name):
        return "torch.compile needs a C++ compiler, and none is on PATH (install g++ or clang++)"
    headers = Path(sysconfig.get_path("include")) / "Python.h"
    if not headers.exists():
        return "torch.compile needs Python's headers (install python3-dev)"
    return None
