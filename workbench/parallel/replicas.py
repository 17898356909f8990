"""``ddp``: a whole model on every rank, gradients averaged while the backward pass still runs."""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from workbench.errors import SettingError
from workbench.settings import Parallel
from workbench.workload.training import Plan

_UNFINISHED = "Expected to have finished reduction in the prior iteration"
_LOGGED = (
    *("bucket_sizes", "num_buckets_reduced", "avg_forward_compute_time"),
    *("avg_backward_compute_time", "avg_backward_comm_time"),
    *("avg_backward_compute_comm_overlap_time", "unused_parameter_size"),
)
"""Of DDP's own numbers; times are nanoseconds."""
_INDICES = re.compile(r"did not receive grad[^:]*:\s*([\d ]+)")


def replicate(plan: Plan, parallel: Parallel) -> Plan:
    """The plan with a model that averages its gradients over the ranks.

    Raises:
        SettingError: When the model cannot be replicated, or an option cannot act here.
    """
    work, model = plan.work, plan.model
    if work.step is None and not work.trains:
        return plan  # no gradient: each rank infers on its share
    if not isinstance(model, nn.Module):
        raise SettingError(
            f"parallel='ddp' cannot act on a {type(model).__name__}: it needs a torch.nn.Module."
        )
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise SettingError(
            "parallel='ddp' has nothing to average: no parameter of the model needs a gradient."
        )
    if isinstance(model, DistributedDataParallel):
        raise SettingError(
            "parallel='ddp' cannot act: the model is a DistributedDataParallel already. Give the "
            "module inside it."
        )
    on_cpu = plan.device.type == "cpu"
    wrapped = DistributedDataParallel(
        model, device_ids=None if on_cpu else [plan.device], **_options(parallel)
    )
    if parallel.compression is not None:
        _compress(wrapped, parallel.compression, on_cpu=on_cpu)
    if parallel.no_sync is False:
        plan.control.deferral = _reduce_always
    return replace(plan, model=wrapped)


def _options(parallel: Parallel) -> dict[str, Any]:
    asked = {
        "bucket_cap_mb": parallel.bucket_mb,
        "gradient_as_bucket_view": parallel.gradient_as_bucket_view,
        "static_graph": parallel.static_graph,
        "find_unused_parameters": parallel.find_unused_parameters,
    }
    return {name: value for name, value in asked.items() if value is not None}


def _reduce_always(model: Any, last: bool) -> AbstractContextManager[Any]:
    return nullcontext()


def _compress(model: DistributedDataParallel, dtype: str, *, on_cpu: bool) -> None:
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    if dtype == "bf16" and on_cpu:
        raise SettingError(
            "compression='bf16' cannot act on a CPU: torch's hook for it needs CUDA with NCCL, or "
            "an Intel GPU. Use compression='fp16', or leave it out."
        )
    hook = default_hooks.bf16_compress_hook if dtype == "bf16" else default_hooks.fp16_compress_hook
    model.register_comm_hook(None, hook)


def logging_data(model: Any) -> dict[str, Any] | None:
    """DDP's own numbers of buckets, of communication and of its overlap with backward."""
    if not isinstance(model, DistributedDataParallel):
        return None
    told = model._get_ddp_logging_data()  # type: ignore[no-untyped-call]
    return {name: told[name] for name in _LOGGED if name in told}


def weights_sum(model: Any) -> float:
    """One number of all weights, the same on ranks that hold the same."""
    inner = getattr(model, "module", model)
    with torch.no_grad():
        sums = [p.detach().double().sum().item() for p in inner.parameters()]
    return float(sum(sums))


@contextmanager
def unused_explained(model: Any) -> Iterator[None]:
    """Say of which parameters DDP waits for a gradient that never comes."""
    try:
        yield
    except RuntimeError as error:
        if _UNFINISHED not in str(error):
            raise
        names = _unused(str(error), model)
        said = f" ({names})" if names else ""
        raise SettingError(
            f"parallel='ddp' cannot act: parameters{said} got no gradient in a step, and every "
            "rank waits for them. Use Parallel(mode='ddp', find_unused_parameters=True), or freeze "
            "them with requires_grad_(False)."
        ) from error


def _unused(text: str, model: Any) -> str:
    found = _INDICES.search(text)
    inner = getattr(model, "module", model)
    if found is None or not isinstance(inner, nn.Module):
        return ""
    names = [name for name, p in inner.named_parameters() if p.requires_grad]
    chosen = [names[int(n)] for n in found[1].split() if int(n) < len(names)]
    more = f" and {len(chosen) - 5} more" if len(chosen) > 5 else ""
    return ", ".join(chosen[:5]) + more
