"""Torch's word that a model does not bear a setting, as the setting's refusal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from workbench.errors import SettingError
from workbench.settings import Settings

_VIEWS = ("view size is not compatible", "Cannot view a tensor")
_DTYPES = (
    *("same dtype", "expected scalar type", "should be the same", "Found dtype"),
    *("mat1 and mat2 must have", "expected m1 and m2", "dtype mismatch", "to have the dtype"),
)
_LACKING = ("could not create a primitive", "not implemented for 'Half'", "for 'BFloat16'")
_KERNELS = ("No available kernel", "No viable backend", "no viable backend")


@contextmanager
def refusals_explained(settings: Settings) -> Iterator[None]:
    """Turn an error that a setting has caused into a :class:`SettingError` that says so."""
    try:
        yield
    except Exception as error:
        why = explain_refusal(error, settings)
        if why is None:
            raise
        raise SettingError(why) from error


def explain_refusal(error: BaseException, settings: Settings) -> str | None:
    """Which setting the model does not bear, and what to do; ``None`` for any other error."""
    if isinstance(error, torch.OutOfMemoryError):
        return None
    if settings.compile and _of_compiler(error):
        return _compiler_refusal(error, settings)
    text = str(error).strip()
    said = f"torch says: {text.partition(chr(10))[0][:300]}"
    for asked, words, why in _suspects(settings):
        if asked and isinstance(error, RuntimeError) and any(word in text for word in words):
            return why.format(said=said)
    return None


def _suspects(settings: Settings) -> tuple[tuple[bool, tuple[str, ...], str], ...]:
    """Whether a setting is in force, what torch says where a model does not bear it, and advice."""
    return (
        (
            bool(settings.channels_last),
            _VIEWS,
            "channels_last=True does not suit this model: it views activations as if they lay in "
            "the plain order ({said}). Use reshape in place of view, or leave channels_last out.",
        ),
        (
            settings.precision == "bf16_pure",
            _DTYPES,
            "precision='bf16_pure' does not suit this model: something in the step stays in "
            "another dtype ({said}). Make it follow its inputs, or use precision='bf16'.",
        ),
        (
            settings.precision in {"bf16", "fp16", "bf16_pure"},
            _LACKING,
            f"precision={settings.precision!r} does not suit this model: torch has no kernel of an "
            "operator for it here ({said}). Use another precision, or leave precision out.",
        ),
        (
            settings.attention is not None,
            _KERNELS,
            f"attention={settings.attention!r} cannot act: the kernel does not take these inputs "
            "({said}). Leave attention out, or use 'math', which takes any.",
        ),
    )


def _of_compiler(error: BaseException) -> bool:
    names = ("torch._dynamo.exc", "torch._inductor.exc")
    kinds = [getattr(sys.modules.get(name), "TorchDynamoException", None) for name in names]
    known = tuple(kind for kind in kinds if isinstance(kind, type))
    return isinstance(error, known) or type(error).__module__ in names


def _compiler_refusal(error: BaseException, settings: Settings) -> str:
    reason = _first_lines(error)
    if settings.compile_fullgraph:
        return (
            f"compile_fullgraph=True cannot act: the model does not give one graph ({reason}). "
            "Leave compile_fullgraph out, and the parts around the break are compiled."
        )
    return (
        f"compile={settings.compile!r} cannot act on this model: the compiler failed ({reason}). "
        "Leave compile out to run it as plain code."
    )


def _first_lines(error: BaseException) -> str:
    """What happened and where in the user's code, from torch's pages of explanation."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    where: Any = next(
        (n for n, line in enumerate(lines) if line.startswith("from user code")), None
    )
    place = "" if where is None else " at " + " ".join(lines[where + 1 : where + 3])[-200:]
    return f"{lines[0][:200] if lines else type(error).__name__}{place}"
