"""Run some steps on given batches, always from the same start, and see what they compute."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from workbench.errors import TimeLimitError
from workbench.settings import Parallel, Settings
from workbench.tuning.block import Driven, Measuring, set_up
from workbench.tuning.fresh import in_ranks, opened
from workbench.tuning.parity import Numbers

if TYPE_CHECKING:
    from workbench.parallel.rank import Rank
    from workbench.workload import Workload

OUTPUT_MOST = 1_000_000
"""Numbers of an output that are compared."""
_DROPOUTS = ("dropout", "dropout_p", "attn_dropout", "attention_dropout")


class Runner:
    """Runs one workload on the same batches again and again, always from the same start."""

    def __init__(self, work: "Workload", measuring: Measuring, time_limit_s: float | None) -> None:
        self._work, self._measuring, self._limit_s = work, measuring, time_limit_s

    def draw(self, settings: Settings, count: int) -> list[Any]:
        """The first batches of the loop."""
        with self._set_up(settings) as driven:
            return [_copy(driven.loop.draw()) for _ in range(count)]

    def random(self, settings: Settings, batches: Sequence[Any]) -> bool:
        """Whether a step draws random numbers."""
        import torch

        with self._set_up(settings) as driven:
            before = torch.get_rng_state(), _device_state(driven.training.device)
            driven.loop.serve([_copy(batches[0])])
            after = torch.get_rng_state(), _device_state(driven.training.device)
        return not all(_equal(a, b) for a, b in zip(before, after, strict=True))

    def batch_size(self, settings: Settings) -> int | None:
        """Samples of a batch, where the loader fixes it."""
        with self._set_up(settings) as driven:
            size = driven.training.effective.get("batch_size")
        return size if isinstance(size, int) else None

    def numbers(
        self, settings: Settings, batches: Sequence[Any], *, quiet: bool, nudge: float = 0.0
    ) -> Numbers:
        """Losses, gradient norms and the first output of steps on these batches."""
        if settings.ranks is not None:
            order = {"batches": list(batches), "quiet": quiet, "nudge": nudge}
            return together(
                in_ranks(_numbers_of_rank, self._work, settings, order, time_limit_s=self._limit_s),
                settings.ranks,
            )
        with self._set_up(settings) as driven:
            change_model(self._work.model, quiet=quiet, nudge=nudge)
            return computed(driven, self._work, batches)

    def nudged(
        self, settings: Settings, batches: Sequence[Any], *, quiet: bool, nudge: float
    ) -> Numbers | None:
        """The same from other weights; ``None`` where weights cannot be changed one by one."""
        try:
            return self.numbers(settings, batches, quiet=quiet, nudge=nudge)
        except TimeLimitError:
            raise
        except Exception:  # noqa: BLE001 - of weights of a kind of their own; nothing is lost
            return None

    def _set_up(self, settings: Settings) -> Any:
        """The loop in this process, where its batches come from even if ranks train on them."""
        alone = replace(settings, parallel=None) if settings.ranks is not None else settings
        return set_up(self._work, alone, self._measuring, self._limit_s)


def computed(driven: Driven, work: "Workload", batches: Sequence[Any]) -> Numbers:
    """What the steps on these batches compute."""
    losses, norms = list[Any](), list[float | None]()
    driven.loop.losses = losses
    outputs = list[Any]()
    with _stepped() as stepped, _watching(driven.training.model, outputs):
        for batch in batches:
            stepped.clear()
            driven.loop.serve([_copy(batch)])
            norms.append(_norm(stepped) if stepped else _left_norm(work))
    return Numbers(
        losses=tuple(_number(loss) for loss in losses),
        gradient_norms=tuple(norms),
        output=outputs[0] if outputs else None,
        skipped_steps=driven.training.skipped_steps or 0,
        precision=str(driven.training.effective.get("precision", "fp32")),
    )


def change_model(model: Any, *, quiet: bool, nudge: float) -> None:
    """Set dropout to 0, and put weights off by a rounding."""
    if quiet:
        _without_dropout(model)
    if nudge:
        _nudge(model, nudge)


def _numbers_of_rank(rank: "Rank", payload: dict[str, Any]) -> Numbers:
    """What one rank computes of its share of each batch."""
    from workbench.parallel.share import Part, cut_batch

    order, work, ranks = payload["order"], payload["work"], payload["settings"].ranks
    change_model(work.model, quiet=order["quiet"], nudge=order["nudge"])
    batches = order["batches"]
    if ranks.divides_batches:
        part = Part(number=rank.number, of=rank.world_size)
        batches = [cut for batch in batches if (cut := cut_batch(batch, part)) is not None]
    with opened(rank, payload) as driven:
        return computed(driven, work, batches)


def together(every: Sequence[Numbers], ranks: Parallel) -> Numbers:
    """The numbers of all ranks as those of one process; outputs are in parts, and not compared."""
    first, last = every[0], every[-1]
    losses = last.losses if ranks.mode == "pp" else first.losses
    norms = first.gradient_norms
    if ranks.divides_batches:
        losses = tuple(_mean(step) for step in zip(*(n.losses for n in every), strict=True))
    if ranks.mode == "pp":  # each has the gradients of its own stage
        norms = tuple(_norm(step) for step in zip(*(n.gradient_norms for n in every), strict=True))
    return replace(first, losses=losses, gradient_norms=norms, output=None)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _left_norm(work: "Workload") -> float | None:
    """Of a loop without an optimizer: what the step left behind."""
    from torch import nn

    if work.optimizers or not isinstance(work.model, nn.Module):
        return None
    return _length([p.grad for p in work.model.parameters() if p.grad is not None])


@contextmanager
def _stepped() -> Iterator[list[Any]]:
    """The optimizers that step inside the block, each with the norm of its gradients then."""
    from torch.optim.optimizer import register_optimizer_step_post_hook

    found: list[Any] = []

    def after(optimizer: Any, args: Any, kwargs: Any) -> None:
        del args, kwargs
        grads = [p.grad for group in optimizer.param_groups for p in group["params"]]
        scale = getattr(optimizer, "grad_scale", None)
        length = _length([grad for grad in grads if grad is not None])
        found.append(length if length is None or scale is None else length / float(scale))

    handle = register_optimizer_step_post_hook(after)
    try:
        yield found
    finally:
        handle.remove()


@contextmanager
def _watching(model: Any, outputs: list[Any]) -> Iterator[None]:
    """Keep the first output of a module."""
    import torch
    from torch import nn

    if not isinstance(model, nn.Module) or isinstance(model, torch.jit.ScriptModule):
        yield  # a script takes no hook
        return

    def after(module: Any, args: Any, output: Any) -> None:
        del module, args
        if not outputs:
            outputs.append(_flat(output))

    handle = model.register_forward_hook(after)
    try:
        yield
    finally:
        handle.remove()


def _flat(output: Any) -> Any:
    """The floating-point numbers of an output as one array; ``None`` without any."""
    import torch

    from workbench.workload.placement import tensors_of

    parts = [
        _real(tensor.detach()).reshape(-1)[:OUTPUT_MOST].to("cpu", torch.float64)
        for tensor in tensors_of(output)
        if (tensor.is_floating_point() or tensor.is_complex()) and not tensor.is_sparse
    ]
    return torch.cat(parts)[:OUTPUT_MOST].numpy() if parts else None


def _norm(lengths: Sequence[float | None]) -> float | None:
    known = [length for length in lengths if length is not None]
    return math.sqrt(sum(length * length for length in known)) if known else None


def _length(grads: Sequence[Any]) -> float | None:
    import torch

    each = [torch.linalg.vector_norm(_real(_dense(grad)).float()).double() for grad in grads]
    return float(torch.stack([one.cpu() for one in each]).norm()) if each else None


def _dense(grad: Any) -> Any:
    if hasattr(grad, "full_tensor"):  # of a weight that is divided among ranks
        grad = grad.full_tensor()
    return grad.coalesce().values() if grad.is_sparse else grad.detach()


def _real(tensor: Any) -> Any:
    """Real and imaginary part as two numbers."""
    import torch

    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def _number(loss: Any) -> float | None:
    if loss is None or loss.numel() != 1:
        return None
    return float(loss)


def _copy(batch: Any) -> Any:
    """The batch with tensors of its own: steps may write to theirs."""
    from workbench.workload.placement import moved

    return moved(batch, lambda tensor: tensor.clone())


def _nudge(model: Any, unit: float) -> None:
    """Put every weight off by up to one rounding; what set the loop up puts it back."""
    import torch
    from torch import nn

    if not isinstance(model, nn.Module):
        return
    chance = torch.Generator(device="cpu").manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.is_floating_point() and weight.device.type != "meta":
                off = torch.rand(weight.shape, generator=chance, device="cpu") - 0.5
                weight.mul_(1 + unit * off.to(weight.device, weight.dtype))


def _without_dropout(model: Any) -> None:
    """Set every dropout of a model to 0; what set the loop up puts it back."""
    from torch import nn
    from torch.nn.modules.dropout import _DropoutNd

    if not isinstance(model, nn.Module):
        return
    for module in model.modules():
        names = ("p",) if isinstance(module, _DropoutNd) else _DROPOUTS
        for name in names:
            if isinstance(module.__dict__.get(name), float):
                setattr(module, name, 0.0)


def _device_state(device: Any) -> Any:
    import torch

    return torch.cuda.get_rng_state(device) if device.type == "cuda" else None


def _equal(a: Any, b: Any) -> bool:
    return bool(a is b or (a is not None and b is not None and a.equal(b)))
