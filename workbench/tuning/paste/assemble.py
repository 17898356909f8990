"""Put the lines of each setting where they belong: process, loader, model, loop."""

from collections.abc import Mapping
from typing import Any

from workbench.settings import Parallel, Settings
from workbench.tuning.paste.loader import loader_lines
from workbench.tuning.paste.loop import loop_lines
from workbench.tuning.paste.model import model_lines, optimizer_lines

NOTHING = "# Nothing that was tried makes this loop faster: it stays as it is.\n"


def pasted(best: Settings, look: Mapping[str, Any], title: str) -> str:
    """Lines of torch that do what ``best`` does.

    They use the names ``model``, ``loss_fn``, ``optimizer`` and ``dataset`` or ``loader`` for what
    the user has, and say so.

    Args:
        best: The settings.
        look: What the loop is, as a search has seen it: ``effective``, ``batch_kind``, ``source``.
        title: Of the workload, for the first line.
    """
    if not best.changes():
        return NOTHING
    source = str(look.get("source") or "loader")
    parts = [
        _head(best, title, _needed(look, source)),
        _process(best),
        loader_lines(best, look["effective"], source),
        model_lines(best, look["effective"]),
        optimizer_lines(best, look["effective"]),
        loop_lines(best, look),
    ]
    lines = [line for part in parts if part for line in (*part, "")]
    return "\n".join([*_imports("\n".join(lines)), *lines])


def _needed(look: Mapping[str, Any], source: str) -> str:
    """Names that must be there before."""
    effective = look["effective"]
    kind = str(effective.get("step", ""))
    names = ["model", source]
    if kind.startswith("own step"):
        names.append("step")
    elif kind != "inference" and look.get("has_loss", True):
        names.append("loss_fn")
    optimizers = effective.get("optimizers") or []
    names += ["optimizers" if len(optimizers) > 1 else "optimizer"] if optimizers else []
    schedulers = effective.get("schedulers") or []
    if schedulers and not kind.startswith("own step"):
        names.append("schedulers" if len(schedulers) > 1 else "scheduler")
    return ", ".join(names)


def _head(best: Settings, title: str, needed: str) -> list[str]:
    clean = "".join(c if c.isprintable() else " " for c in title)
    return [
        f"# {clean}: {best}",
        f"# Yours, made before these lines: {needed}.",
    ]


def _process(best: Settings) -> list[str]:
    """What is set once, at the start of the program."""
    lines: list[str] = []
    if best.parallel is not None and best.parallel != Parallel(mode="none"):
        lines.append(f"# {best.parallel} needs processes: torchrun --nproc-per-node N script.py")
    if best.cpu_affinity is not None:
        lines.append(f"os.sched_setaffinity(0, {set(best.cpu_affinity)!r})  # Linux")
    if best.threads is not None:
        lines.append(f"torch.set_num_threads({best.threads})")
    if best.interop_threads is not None:
        lines.append(
            f"torch.set_num_interop_threads({best.interop_threads})  # once, before any work"
        )
    products = best.matmul_precision or {"tf32": "high", "fp32": "highest"}.get(
        best.precision or ""
    )
    if products is not None:
        lines.append(f'torch.set_float32_matmul_precision("{products}")')
    if best.precision in {"tf32", "fp32"}:
        lines.append(f"torch.backends.cudnn.allow_tf32 = {best.precision == 'tf32'}")
    if best.cudnn_benchmark is not None:
        lines.append(f"torch.backends.cudnn.benchmark = {best.cudnn_benchmark}")
    return ["# Once, at the start of the program.", *lines] if lines else []


def _imports(text: str) -> list[str]:
    """The imports that the lines need."""
    found = [line for word, line in _PLAIN if word in text]
    found += ["import torch"]
    found += [line for word, line in _FROM if word in text]
    return [*found, ""]


_PLAIN = (("functools.", "import functools"), ("os.sched", "import os"))
_FROM = (
    ("SDPBackend", "from torch.nn.attention import SDPBackend, sdpa_kernel"),
    ("DataLoader(", "from torch.utils.data import DataLoader"),
    ("checkpoint,", "from torch.utils.checkpoint import checkpoint"),
    ("convert_to_float8", "from torchao.float8 import convert_to_float8_training"),
)
