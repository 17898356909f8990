"""Which implementations of scaled_dot_product_attention work on a device, each tried alone."""

from dataclasses import dataclass

from workbench.machine.dtypes import TIME_LIMIT_S
from workbench.machine.probing import trial_of

BACK_ENDS = ("flash", "efficient", "cudnn", "math")


@dataclass(frozen=True, kw_only=True)
class AttentionBackEnd:
    """One implementation; a small case without mask and dropout was tried."""

    name: str
    dtypes: tuple[str, ...] | None
    """Those in which it worked, of fp32, bf16 and fp16; ``None`` if it was not tried."""

    @property
    def possible(self) -> bool | None:
        """Whether it works in any type."""
        return None if self.dtypes is None else bool(self.dtypes)


def attention_back_ends(
    device: str = "cpu", time_limit_s: float = TIME_LIMIT_S
) -> tuple[AttentionBackEnd, ...]:
    """What each back end can do on ``device``; tried in the process that also tries dtypes."""
    found = trial_of(device, time_limit_s)["attention"]
    return tuple(
        AttentionBackEnd(name=name, dtypes=tuple(found[name]) if name in found else None)
        for name in BACK_ENDS
    )
