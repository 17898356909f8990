"""Record the kernels of a model once, as CUDA graphs, and replay them."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor, nn

from workbench.errors import SettingError
from workbench.workload.snapshot.random_state import save_random_state

Capture = Callable[[nn.Module, tuple[Tensor, ...]], Callable[..., Any]]


def graphed(model: Any, undo: ExitStack) -> "Graphed":
    """A twin of the model that captures at its first call and replays from then on.

    Raises:
        SettingError: When the model is no module, has hooks, or runs in several places.
    """
    why = _why_not(model)
    if why is not None:
        raise SettingError(f"cuda_graphs=True cannot act: {why}. Leave cuda_graphs out.")
    twin = Graphed(model, _capture)
    undo.callback(twin.forget)
    return twin


class Graphed:
    """Calls a model by its graphs for inputs of the shape it was captured with, else plainly.

    Args:
        model: The user's model, which stays as it is.
        capture: Makes a graphed callable from the model and the inputs of its first call.
    """

    def __init__(self, model: nn.Module, capture: Capture) -> None:
        self._model = model
        self._capture = capture
        self._replay: Callable[..., Any] | None = None
        self._known: tuple[Any, ...] | None = None

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """The model's output."""
        if named or not all(isinstance(one, Tensor) for one in inputs):
            raise SettingError(
                "cuda_graphs=True cannot act: the model is called with more than tensors by "
                "position. Leave cuda_graphs out, or use compile='reduce-overhead'."
            )
        if self._known is None:
            self._known = self._form(inputs)
            self._replay = self._captured(inputs)
        if self._replay is not None and self._known == self._form(inputs):
            return self._replay(*inputs)
        return self._model(*inputs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_model"], name)

    def forget(self) -> None:
        """Let go of the graphs and their memory."""
        self._replay = None

    def _form(self, inputs: tuple[Tensor, ...]) -> tuple[Any, ...]:
        places = tuple((t.shape, t.stride(), t.dtype, t.requires_grad) for t in inputs)
        kind = inputs[0].device.type if inputs else "cuda"
        cast = torch.is_autocast_enabled(kind) and torch.get_autocast_dtype(kind)
        return (*places, torch.is_grad_enabled(), self._model.training, cast)

    def _captured(self, inputs: tuple[Tensor, ...]) -> Callable[..., Any]:
        """The graphed twin; capturing leaves buffers, gradients and random states as they were."""
        model = self._model
        buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
        gradients = [(parameter, parameter.grad) for parameter in model.parameters()]
        state = save_random_state()
        try:
            return self._capture(model, inputs)
        except RuntimeError as error:
            if isinstance(error, torch.OutOfMemoryError):
                raise
            raise SettingError(
                f"cuda_graphs=True cannot act on this model: {str(error).partition(chr(10))[0]}. "
                "It may wait for the device or depend on its data. Leave cuda_graphs out."
            ) from error
        finally:
            with torch.no_grad():
                for buffer, before in buffers:
                    buffer.copy_(before)
            for parameter, gradient in gradients:
                parameter.grad = gradient
            state.restore()


class _Holder(nn.Module):
    """Takes the graphed ``forward`` in place of the user's model, and has its parameters."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.training = model.training  # of this one only

    def forward(self, *inputs: Tensor) -> Any:
        return self.model(*inputs)


def _capture(model: nn.Module, inputs: tuple[Tensor, ...]) -> Callable[..., Any]:
    samples = tuple(one.detach().clone().requires_grad_(one.requires_grad) for one in inputs)
    kind = inputs[0].device.type if inputs else "cuda"

    with torch.autocast(
        kind,
        dtype=torch.get_autocast_dtype(kind),
        enabled=torch.is_autocast_enabled(kind),
        cache_enabled=False,
    ):
        made: Callable[..., Any] = torch.cuda.make_graphed_callables(_Holder(model), samples)
    return made


def _why_not(model: Any) -> str | None:
    if not isinstance(model, nn.Module):
        return f"the model is a {type(model).__name__}, not a module"
    if isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
        return f"{type(model).__name__} runs the model in several places"
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    for path, module in model.named_modules():
        if any(getattr(module, name) for name in hooks):
            return f"{path or 'the model'} has hooks, which a replay would not call"
    return None
