"""How a workload is spread over several devices or processes, as one frozen record."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from workbench.errors import SettingError
from workbench.settings.values import above_zero, names, short, switch, whole, word

ParallelMode = Literal["none", "dp", "ddp", "fsdp", "tp", "pp"]
Backend = Literal["nccl", "gloo", "mpi", "xccl"]
LauncherName = Literal["local", "mpirun"]
ReduceDtype = Literal["fp32", "bf16", "fp16"]
HalfDtype = Literal["bf16", "fp16"]
Schedule = Literal["gpipe", "1f1b"]

MODES: tuple[str, ...] = get_args(ParallelMode)
_ALL = ("ddp", "fsdp", "tp", "pp")
_ACTS_IN: dict[str, tuple[str, ...]] = {
    "world_size": ("dp", *_ALL),
    "backend": _ALL,
    "launcher": _ALL,
    "bucket_mb": ("ddp",),
    "gradient_as_bucket_view": ("ddp",),
    "static_graph": ("ddp",),
    "find_unused_parameters": ("ddp",),
    "compression": ("ddp",),
    "no_sync": ("ddp", "fsdp"),
    "shard_degree": ("fsdp",),
    "reshard_after_forward": ("fsdp",),
    "param_dtype": ("fsdp",),
    "reduce_dtype": ("fsdp",),
    "output_dtype": ("fsdp",),
    "plan": ("tp",),
    "split": ("pp",),
    "micro_batches": ("pp",),
    "schedule": ("pp",),
}
"""In which modes each field acts."""
_WORDS: dict[str, tuple[str, ...]] = {
    "backend": get_args(Backend),
    "launcher": get_args(LauncherName),
    "compression": get_args(HalfDtype),
    "reduce_dtype": get_args(ReduceDtype),
    "param_dtype": get_args(HalfDtype),
    "output_dtype": get_args(ReduceDtype),
    "schedule": get_args(Schedule),
}
_SWITCHES = (
    *("gradient_as_bucket_view", "static_graph", "find_unused_parameters", "no_sync"),
    "reshard_after_forward",
)
_STYLES = ("colwise", "rowwise")


@dataclass(frozen=True, kw_only=True)
class Parallel:
    """The value of ``Settings(parallel=...)``; the name of a mode alone means its defaults.

    Every field but ``mode`` may be left at ``None``: torch's own default, or the one told here.
    """

    mode: ParallelMode
    """none: one process. dp: ``nn.DataParallel``, threads in one process. ddp: one process a
    device, gradients summed. fsdp: the same with weights, gradients and optimizer state sharded
    (``fully_shard``). tp: single layers divided among the ranks. pp: layers one after the other on
    different ranks."""
    world_size: int | None = None
    """Ranks; left out: one for each accelerator, two on a CPU."""
    backend: Backend | None = None
    """Which library carries the collectives; left out: nccl on NVIDIA, xccl on Intel, else gloo."""
    launcher: LauncherName | None = None
    """What starts the ranks: local (``torch.distributed.run``, the default) or mpirun."""
    bucket_mb: float | None = None
    """ddp: gradients travel in buckets of this many MiB; torch's own is 25."""
    gradient_as_bucket_view: bool | None = None
    """ddp: gradients lie inside the buckets, which saves their memory once."""
    static_graph: bool | None = None
    """ddp: the graph is the same in every step, so torch may learn it once."""
    find_unused_parameters: bool | None = None
    """ddp: look for parameters that got no gradient, in every step; costs a walk of the graph."""
    compression: HalfDtype | None = None
    """ddp: gradients travel in this type and are added in it."""
    no_sync: bool | None = None
    """ddp and fsdp, under accumulation: reduce gradients after the last micro-batch only (True,
    the default) or after each."""
    shard_degree: int | None = None
    """fsdp: ranks among which weights are sharded; groups of so many ranks hold copies. Left out:
    all ranks."""
    reshard_after_forward: bool | None = None
    """fsdp: let go of gathered weights after the forward pass and gather them again."""
    param_dtype: HalfDtype | None = None
    """fsdp: the type in which weights are gathered and the forward and backward pass compute."""
    reduce_dtype: ReduceDtype | None = None
    """fsdp: the type in which gradients are reduced."""
    output_dtype: ReduceDtype | None = None
    """fsdp: the type to which the outputs of the model are cast."""
    plan: tuple[tuple[str, str], ...] | None = None
    """tp: pairs of a module's name (``*`` matches a part of it) and ``colwise`` or ``rowwise``;
    left out: pairs of linear layers and attention projections are found by their names."""
    split: tuple[str, ...] | None = None
    """pp: names of the modules with which the second, third … stage begin; left out: cut where the
    measured times balance."""
    micro_batches: int | None = None
    """pp: parts into which each batch is cut; left out: one for each stage."""
    schedule: Schedule | None = None
    """pp: 1f1b (the default) or gpipe."""

    def __post_init__(self) -> None:
        word("parallel", self.mode, MODES)
        for name, value in self._given().items():
            if self.mode not in _ACTS_IN[name]:
                where = " and ".join(f"parallel={mode!r}" for mode in _ACTS_IN[name])
                raise SettingError(
                    f"{name}={short(value)} acts in {where} only: leave it out of "
                    f"parallel={self.mode!r}."
                )
            object.__setattr__(self, name, _checked(name, value))
        self._check_together()

    def _given(self) -> dict[str, Any]:
        values = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "mode"}
        return {name: value for name, value in values.items() if value is not None}

    def _check_together(self) -> None:
        size, degree = self.world_size, self.shard_degree
        if size is not None and degree is not None and size % degree:
            raise SettingError(
                f"shard_degree={degree} does not divide world_size={size}: every group of ranks "
                "that holds a whole model must be of that size."
            )
        if self.split is not None and size is not None and len(self.split) != size - 1:
            raise SettingError(
                f"split names {len(self.split)} modules, and {size} stages begin with {size - 1} "
                "of them: the first stage begins with the model itself."
            )
        if self.static_graph and self.find_unused_parameters:
            raise SettingError(
                "static_graph=True finds unused parameters once by itself: leave "
                "find_unused_parameters out."
            )

    @property
    def spreads(self) -> bool:
        """Whether the workload runs in several processes."""
        return self.mode in _ALL

    @property
    def divides_batches(self) -> bool:
        """Whether each rank gets a part of every batch."""
        return self.mode in ("ddp", "fsdp")

    def to_json(self) -> str | dict[str, Any]:
        """The name of the mode, or a plain dictionary when more is set."""
        given = self._given()
        if not given:
            return self.mode
        return {"mode": self.mode, **{name: _plain(value) for name, value in given.items()}}

    @classmethod
    def from_json(cls, value: Any) -> "Parallel":
        """The record that :meth:`to_json` wrote; an unknown name is an error."""
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls(mode=value)  # type: ignore[arg-type]
        if not isinstance(value, dict):
            raise SettingError(
                f"parallel={short(value)} must be one of {', '.join(MODES)}, or a record such as "
                "Parallel(mode='ddp', world_size=2)."
            )
        known = [f.name for f in fields(cls)]
        for name in value:
            if name not in known:
                raise SettingError(
                    f"unknown setting {name!r} of parallel; known are {', '.join(sorted(known))}."
                )
        if "mode" not in value:
            raise SettingError(f"parallel={short(value)} names no mode: one of {', '.join(MODES)}.")
        return cls(**value)

    def __str__(self) -> str:
        return "-".join((self.mode, *_said(self._given())))


def _said(given: dict[str, Any]) -> Iterator[str]:
    for name, value in given.items():
        if name == "world_size":
            yield str(value)
        elif isinstance(value, tuple):
            yield f"{name}={len(value)}"
        else:
            yield f"{name}={value:g}" if isinstance(value, float) else f"{name}={value}"


def _plain(value: Any) -> Any:
    return [_plain(v) for v in value] if isinstance(value, tuple) else value


def _checked(name: str, value: Any) -> Any:
    if name in _WORDS:
        return word(name, value, _WORDS[name])
    if name in _SWITCHES:
        return switch(name, value)
    if name == "bucket_mb":
        return above_zero(name, value, " of MiB")
    if name == "plan":
        return _plan(value)
    if name == "split":
        return names(name, value, "names of modules")
    return whole(name, value, 2 if name == "world_size" else 1)


def _plan(value: Any) -> tuple[tuple[str, str], ...]:
    pairs = list(value.items()) if isinstance(value, dict) else value
    good = isinstance(pairs, tuple | list) and all(
        isinstance(p, tuple | list) and len(p) == 2 and isinstance(p[0], str) and p[1] in _STYLES
        for p in pairs
    )
    if not good or not pairs:
        raise SettingError(
            f"plan={short(value)} must be pairs of a module's name and one of "
            f"{', '.join(_STYLES)}, such as (('mlp.up', 'colwise'), ('mlp.down', 'rowwise'))."
        )
    modules = names("plan", [name for name, _ in pairs], "names of modules")
    return tuple(zip(modules, (style for _, style in pairs), strict=True))
