"""The card of a model: what it holds and what a sample costs, as a table, text and HTML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from workbench.units import NOT_MEASURED, bytes_text, count_text, number_text

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = (
    *("module", "parameters", "parameter_bytes", "activation_bytes"),
    *("forward_flops_per_sample", "backward_flops_per_sample"),
)


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """Bytes of a batch's step and FLOPs of a sample; a multiply-add counts as two."""

    name: str
    samples: int
    """In the batch that it was worked out for."""
    parameters: int
    parameter_bytes: Mapping[str, int]
    """By dtype; a shared parameter counts once."""
    buffer_bytes: int
    gradient_bytes: Mapping[str, int]
    """By dtype, of the parameters that are trained."""
    activation_bytes: int
    """Kept from forward for backward, for the whole batch; parameters and inputs left out."""
    optimizer_bytes: int | None
    """``None`` without an optimizer, or where it cannot be known; see ``notes``."""
    data_bytes_per_sample: float
    """Of the tensors of a batch, as they go to the device."""
    forward_flops_per_sample: float
    backward_flops_per_sample: float | None
    """``None`` where nothing is trained."""
    moved_bytes_per_sample: float
    """Read and written by every operator by itself; fusing and caches move less."""
    modules: tuple[tuple[Any, ...], ...]
    """Rows of :meth:`table`."""
    notes: tuple[str, ...] = ()

    @property
    def intensity(self) -> float | None:
        """FLOPs for each byte that operators move."""
        flops = self.forward_flops_per_sample + (self.backward_flops_per_sample or 0)
        return flops / self.moved_bytes_per_sample if self.moved_bytes_per_sample else None

    def table(self) -> pd.DataFrame:
        """One row a module, children included in their parents; the model itself first."""
        import pandas as pd

        return pd.DataFrame(self.modules, columns=list(COLUMNS))

    def _rows(self) -> list[tuple[str, str]]:
        backward = self.backward_flops_per_sample
        return [
            ("parameters", f"{count_text(self.parameters)}, {_by_type(self.parameter_bytes)}"),
            ("buffers", bytes_text(self.buffer_bytes)),
            ("gradients", _by_type(self.gradient_bytes)),
            ("optimizer state", bytes_text(self.optimizer_bytes)),
            (f"activations of {self.samples} samples", bytes_text(self.activation_bytes)),
            ("data a sample", bytes_text(self.data_bytes_per_sample)),
            ("FLOPs a sample, forward", _flops(self.forward_flops_per_sample)),
            ("FLOPs a sample, backward", _flops(backward)),
            ("FLOPs a byte moved", _number(self.intensity)),
        ]

    def __repr__(self) -> str:
        rows = self._rows()
        width = max(len(name) for name, _ in rows)
        lines = [self.name, *(f"{name.ljust(width)}  {text}" for name, text in rows)]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        body = "".join(
            f'<tr><th scope="row">{escape(name)}</th><td>{escape(text)}</td></tr>'
            for name, text in self._rows()
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        html = f"<table><caption>{escape(self.name)}</caption>{body}</table>{notes}"
        return {"text/html": html, "text/plain": repr(self)}


def _by_type(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{bytes_text(size)} {name}" for name, size in sizes.items()) or "none"


def _flops(count: float | None) -> str:
    if count is None:
        return NOT_MEASURED
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if count >= size:
            return f"{number_text(count / size)} {unit}FLOP"
    return f"{number_text(count)} FLOP"


def _number(value: float | None) -> str:
    return NOT_MEASURED if value is None else number_text(value)
