"""The loader in plain torch: its arguments, and what a data set needs for them."""

from collections.abc import Mapping
from typing import Any

from workbench.settings import Settings

_ARGUMENTS = {
    "workers": "num_workers",
    "prefetch_factor": "prefetch_factor",
    "pin_memory": "pin_memory",
    "persistent_workers": "persistent_workers",
    "in_order": "in_order",
    "multiprocessing_context": "multiprocessing_context",
}
_WITH_WORKERS = ("prefetch_factor", "persistent_workers", "in_order", "multiprocessing_context")
_SWITCHED = (*_ARGUMENTS, "batch_size", "drop_last", "batched_fetch", "worker_threads")


def loader_lines(best: Settings, effective: Mapping[str, Any], source: str) -> list[str]:
    """A ``DataLoader``; nothing where the user's own stays as it is.

    Args:
        best: The settings.
        effective: What was in force without them.
        source: ``dataset`` or ``loader``: what the user has.
    """
    asked = any(getattr(best, name) is not None for name in _SWITCHED)
    if source == "loader" and not asked:
        return []
    before, arguments = _fetching(best, source)
    if best.worker_threads is not None:
        before += [
            "def start_worker(worker):",
            f"    torch.set_num_threads({best.worker_threads})",
            "",
        ]
        arguments["worker_init_fn"] = "start_worker"
    arguments = {**_batches(best, effective, source), **_workers(best, effective), **arguments}
    named = [f"    {name}={value}," for name, value in arguments.items()]
    said = "In place of your loader; shuffling and collating stay yours."
    if source == "dataset":
        said = "The loader; add a sampler or collate_fn of your own, if you have them."
    data = "dataset" if source == "dataset" else "loader.dataset"
    return [f"# {said}", *before, "loader = DataLoader(", f"    {data},", *named, ")"]


def _batches(best: Settings, effective: Mapping[str, Any], source: str) -> dict[str, str]:
    """Which samples make a batch."""
    size = best.batch_size if best.batch_size is not None else effective.get("batch_size")
    if source == "dataset":
        shuffled = effective.get("sampler") == "RandomSampler"
        found = {"batch_size": repr(size)}
        if not effective.get("iterable"):
            found["shuffle"] = repr(shuffled)
        return found | _drop_last(best, "")
    kept = {name: f"loader.{name}" for name in ("collate_fn", "worker_init_fn", "generator")}
    if effective.get("batch_sampler") not in {None, "BatchSampler"}:
        return {"batch_sampler": "loader.batch_sampler", **kept}
    sampler = {} if effective.get("iterable") else {"sampler": "loader.sampler"}
    return {"batch_size": repr(size), **sampler, **_drop_last(best, "loader.drop_last"), **kept}


def _drop_last(best: Settings, otherwise: str) -> dict[str, str]:
    if best.drop_last is not None:
        return {"drop_last": repr(best.drop_last)}
    return {"drop_last": otherwise} if otherwise else {}


def _workers(best: Settings, effective: Mapping[str, Any]) -> dict[str, str]:
    """Who loads, and what is held ready: the settings, else what was in force."""
    values = {
        name: effective.get(name) if getattr(best, name) is None else getattr(best, name)
        for name in _ARGUMENTS
    }
    workers = values["workers"] or 0
    found = {}
    for name, argument in _ARGUMENTS.items():
        value, given = values[name], getattr(best, name) is not None
        usual = value in {None, False} or (name == "in_order" and value)
        if name in _WITH_WORKERS and not workers:
            continue
        if given or not usual:
            found[argument] = repr(value)
    found.setdefault("num_workers", repr(workers))
    return found


def _fetching(best: Settings, source: str) -> tuple[list[str], dict[str, str]]:
    """Whole batches from the data set, or sample by sample."""
    if best.batched_fetch is None:
        return [], {}
    data = "dataset" if source == "dataset" else "loader.dataset"
    if not best.batched_fetch:
        return [f"{data}.__getitems__ = None  # sample by sample"], {}
    return [
        f'if not callable(getattr({data}, "__getitems__", None)):  # of a TensorDataset',
        f"    rows = {data}",
        "    rows.__getitems__ = lambda indices: "
        "[tensor[torch.as_tensor(indices)] for tensor in rows.tensors]",
        "",
        "",
        "def whole(batch):",
        '    """A list of tensors is a batch already; samples are put together as usual."""',
        "    if isinstance(batch[0], torch.Tensor):",
        "        return batch",
        "    return torch.utils.data.default_collate(batch)",
        "",
        "",
    ], {"collate_fn": "whole"}
