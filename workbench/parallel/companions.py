"""Which settings go together with which mode, and in a sentence each why the others do not."""

from collections.abc import Mapping

from workbench.errors import SettingError
from workbench.settings import Parallel, Settings

_GRAPHS = "a recorded graph would hold collectives of one moment, which torch's back ends refuse"
_ONE_BY_ONE = (
    "the optimizer must go over divided and whole weights one by one, so it cannot be told to take "
    "them together"
)
_LAYOUT = (
    "channels last is for convolutions, and what is divided or sent between ranks is made for the "
    "usual layout"
)
_PARTS = "a rank sees the gradients of its own part only, and would clip by a part of their norm"
_WHY: Mapping[str, Mapping[str, str]] = {
    "fsdp": {
        "compile": "weights come and go around every block, which breaks the graph there",
        "cuda_graphs": _GRAPHS,
        "checkpointing": "a block that runs again would gather its weights after they were let go",
    },
    "tp": {
        "cuda_graphs": _GRAPHS,
        "channels_last": _LAYOUT,
        "optimizer": _ONE_BY_ONE,
        "clip_norm": _PARTS,
    },
    "pp": {
        "compile": "the schedule calls stages that are cut from the model as it is",
        "cuda_graphs": _GRAPHS,
        "channels_last": _LAYOUT,
        "optimizer": "each rank holds another part of the weights, and it was never tried",
        "clip_norm": _PARTS,
        "accumulation": "the schedule cuts batches itself: use Parallel(mode='pp', micro_batches=)",
    },
}
_PRECISIONS: Mapping[str, tuple[str, ...]] = {
    "fsdp": ("fp32", "tf32", "bf16"),
    "tp": ("fp32", "tf32", "bf16"),
    "pp": ("fp32", "tf32", "bf16"),
}
"""Of the modes that divide the model; ``ddp`` takes what one process takes."""
_WHY_PRECISION = {
    "fp16": "a scale of gradients would have to be agreed on by ranks that hold parts of them",
    "bf16_pure": "weights are cast after they were divided",
    "fp8": "its linear layers are exchanged for others that cannot be divided",
}


def check_companions(settings: Settings, parallel: Parallel) -> None:
    """Refuse settings that cannot act together with a mode.

    Raises:
        SettingError: Naming the setting, and the reason.
    """
    mode, asked = parallel.mode, settings.changes()
    for name, why in _WHY.get(mode, {}).items():
        value = asked.get(name)
        if value not in (None, False, 1 if name == "accumulation" else None):
            raise SettingError(
                f"{name}={value!r} is not taken together with parallel={mode!r}: {why}. Leave one "
                "of them out."
            )
    precision = settings.precision
    if precision is not None and precision not in _PRECISIONS.get(mode, (precision,)):
        better = (
            "Parallel(mode='fsdp', param_dtype='bf16'), or precision='bf16'"
            if mode == "fsdp"
            else "precision='bf16'"
        )
        raise SettingError(
            f"precision={precision!r} is not taken together with parallel={mode!r}: "
            f"{_WHY_PRECISION[precision]}. Use {better}."
        )
