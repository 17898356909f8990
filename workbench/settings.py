"""What the switches change, as one frozen record; ``None`` always means *as the user has it*."""

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from workbench.errors import SettingError

Precision = Literal["fp32", "tf32", "bf16", "fp16"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that a switch can change for a run.

    A field left at ``None`` is not touched. The record checks itself once, when it is made;
    whether a setting can act on a given model, loader or machine is checked when it is applied.
    """

    precision: Precision | None = None
    """How numbers are computed: fp32, tf32, bf16 or fp16. The weights keep their dtype.

    Does: fp32 switches autocast and TF32 off; tf32 lets matrix products of fp32 numbers use tensor
    cores; bf16 and fp16 run the forward pass under autocast, fp16 with gradient scaling.
    Helps: where matrix products and convolutions take most of the time, and to save memory.
    Hurts: on models of many small operators (casts are added); fp16 can overflow; both round more.
    Needs: instructions for the dtype. fp16 is refused on a CPU that has none, bf16 is noted; tf32
    needs an NVIDIA device of compute capability 8.0 or later. fp16 scales gradients, so a step of
    the user's own must take ``control``.
    """
    batch_size: int | None = None
    """Samples per batch.

    Does: a copy of the loader makes batches of this size. The learning rate is never changed with
    it: doing that is a decision about training.
    Helps: larger, where kernels are short and the device waits for the host; smaller, to save
    memory.
    Hurts: memory grows with it, and the optimizer steps less often per epoch.
    Needs: a ``Dataset`` or a plain ``DataLoader`` without a batch sampler of its own.
    """
    accumulation: int | None = None
    """Micro-batches per optimizer step.

    Does: each batch of the loader is cut into this many parts; each runs forward and backward by
    itself, and its loss counts by its share of the samples, so that the gradient of a mean loss
    stays that of the whole batch. One step stays one batch and one optimizer step. For a larger
    effective batch raise ``batch_size`` with it.
    Helps: activations take about that many times less memory.
    Hurts: shorter kernels and more launches; batch norm sees the micro-batches.
    Needs: tensors with a common first dimension; a step of one's own must take ``control``.
    """
    workers: int | None = None
    """Data-loader worker processes; 0 loads in the training process.

    Helps: where the step waits for input and CPUs are free.
    Hurts: beyond the usable CPUs; each worker takes memory, and starting them takes time at every
    epoch (see ``persistent_workers``).
    Needs: a ``Dataset`` or a plain ``DataLoader``. An iterable data set must divide itself
    by ``torch.utils.data.get_worker_info()``, otherwise every worker reads all of it; more than one
    worker is refused for one that does not.
    """
    prefetch_factor: int | None = None
    """Batches that each worker holds ready.

    Helps: where the time to load a batch varies much.
    Hurts: memory and shared memory hold workers × prefetch_factor batches.
    Needs: at least one worker.
    """
    pin_memory: bool | None = None
    """Copy batches to page-locked memory, from which a device copies faster.

    Helps: where copies to the device take time; with ``non_blocking`` they overlap with compute.
    Hurts: a thread and a copy more on the host; page-locked memory cannot be swapped.
    Needs: an accelerator on which the model runs.
    """
    persistent_workers: bool | None = None
    """Keep workers alive between epochs.

    Helps: short epochs, and where workers start by spawn.
    Hurts: memory of the workers stays taken; what they cached of the data set goes stale.
    Needs: at least one worker.
    """
    non_blocking: bool | None = None
    """Let copies to the device overlap with the host.

    Helps: where the host waits for copies.
    Hurts: nothing, as long as the batch is not written to before the copy is done.
    Needs: an accelerator and pinned memory; a step of one's own must take ``control``.
    """
    compile: bool | None = None
    """Run the model through ``torch.compile``; False runs a compiled model as plain code.

    Helps: many small operators in a row, which become few kernels.
    Hurts: the first steps take seconds to minutes; changing shapes compile again.
    Needs: a C++ compiler and Python's headers on a CPU, Triton on a GPU; a model that is not
    compiled yet.
    """
    channels_last: bool | None = None
    """Keep 4-d weights and inputs in channels-last memory order; False: in the plain order.

    Helps: convolutions on tensor cores, and on CPUs with bf16.
    Hurts: models that view or flatten their activations pay copies between the orders.
    Needs: a model with 4-d weights.
    """

    def __post_init__(self) -> None:
        if self.precision is not None and self.precision not in get_args(Precision):
            allowed = ", ".join(get_args(Precision))
            raise SettingError(f"precision={self.precision!r} is unknown; use one of {allowed}.")
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int):
                raise SettingError(f"{name}={value!r} must be a whole number.")
            if value < least:
                raise SettingError(f"{name}={value} must be at least {least}.")
        for name in _SWITCHES:
            value = getattr(self, name)
            if value is not None and not isinstance(value, bool):
                raise SettingError(f"{name}={value!r} must be True, False or None.")
        if self.workers == 0:
            for name in ("prefetch_factor", "persistent_workers"):
                if getattr(self, name):
                    raise SettingError(
                        f"{name} needs worker processes, but workers=0: "
                        f"set workers to 1 or more, or leave {name} out."
                    )

    def changes(self) -> dict[str, Any]:
        """The fields that are set, in the order of the record."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: value for name, value in values.items() if value is not None}

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary with only the fields that are set."""
        return self.changes()

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Settings":
        """The record that :meth:`to_json` wrote; an unknown name is an error."""
        known = {f.name for f in fields(cls)}
        for name in values:
            if name not in known:
                raise SettingError(
                    f"unknown setting {name!r}; known are {', '.join(sorted(known))}."
                )
        return cls(**values)

    def __str__(self) -> str:
        changed = self.changes()
        if not changed:
            return "as it is"
        return ", ".join(f"{name}={value}" for name, value in changed.items())


_LEAST = {"batch_size": 1, "accumulation": 1, "workers": 0, "prefetch_factor": 1}
_SWITCHES = ("pin_memory", "persistent_workers", "non_blocking", "compile", "channels_last")


@dataclass(frozen=True, kw_only=True)
class Record:
    """What is recorded beside operators and kernels; each costs time and disk.

    ``loader`` is not torch.profiler's: it says whether probes in the data loader tell what every
    worker did for every batch, for less than 2 % of a step.
    """

    shapes: bool = True
    stacks: bool = False
    memory: bool = False
    modules: bool = False
    loader: bool = True

    def __post_init__(self) -> None:
        for name, value in self.to_json().items():
            if not isinstance(value, bool):
                raise SettingError(f"{name}={value!r} must be True or False.")

    def to_json(self) -> dict[str, bool]:
        """A plain dictionary of these choices."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def check_records(settings: Any, record: Any) -> None:
    """Refuse what only looks like the records of this module, such as a plain dictionary.

    Raises:
        SettingError: Naming how to write it.
    """
    if settings is not None and not isinstance(settings, Settings):
        raise SettingError(
            f"settings={settings!r} is a {type(settings).__name__}; "
            "give a record such as wb.Settings(workers=2)."
        )
    if not isinstance(record, Record):
        raise SettingError(
            f"record={record!r} is a {type(record).__name__}; "
            "give a record such as wb.Record(shapes=True)."
        )
