"""What a search may try: what findings name, then what may help although no finding names it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal

from workbench.errors import SettingError
from workbench.settings import Settings
from workbench.tuning.attempt import joined

if TYPE_CHECKING:
    from workbench.workload import Workload
    from workbench.workload.capability import Offer

OFFER, LOADER = "offer", "loader"
FIELDS = tuple(f.name for f in fields(Settings))
_WITH_WORKERS = ("prefetch_factor", "persistent_workers")
LOADING = (
    *("workers", "prefetch_factor", "pin_memory", "persistent_workers", "batched_fetch"),
    *("in_order", "multiprocessing_context", "worker_threads", "non_blocking"),
)
"""Settings that can gain no more than the wait for input, where the loop loads for itself."""
COMPUTING = ("precision", "matmul_precision", "channels_last", "compile", "cudnn_benchmark")
"""Settings that can gain no more than the rest of the step."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A change worth a trial, or one that was refused before it."""

    change: Settings
    origin: str
    bound: float | None = None
    """Share of the step that it saves at most; ``None``: not known."""
    refused: str | None = None
    """Why it is not tried."""
    about: str = ""
    """What the finding says."""


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Parts of a step under the best settings so far; ``None`` means not measured."""

    input: float | None = None
    optimizer: float | None = None

    def bound(self, change: Settings, *, workers: int, on_cpu: bool) -> float | None:
        """Share of the step that a change saves at most; ``None`` where nothing is known.

        Fewer worker processes leave more of a CPU to the training, so that on one only a loop
        that loads for itself is bounded by its wait.
        """
        names = set(change.changes())
        if self.input is not None and names <= set(LOADING) and not (on_cpu and workers):
            return self.input
        if self.optimizer is not None and names == {"optimizer"}:
            return self.optimizer
        if self.input is not None and names <= set(COMPUTING):
            return 1 - self.input
        return None


@dataclass(frozen=True, kw_only=True)
class _Guess:
    """How much a kind of change usually gains, and what its trial costs beside others.

    Own choice: it orders the trials, and decides nothing.
    """

    gain: float
    cost: float = 1.0


_GUESSES: Mapping[str, _Guess] = {
    "workers": _Guess(gain=0.4),
    "batched_fetch": _Guess(gain=0.3),
    "precision": _Guess(gain=0.25),
    "channels_last": _Guess(gain=0.15),
    "batch_size": _Guess(gain=0.12),
    "pin_memory": _Guess(gain=0.1),
    "cudnn_benchmark": _Guess(gain=0.1),
    "compile": _Guess(gain=0.2, cost=4.0),
    "threads": _Guess(gain=0.06),
    "optimizer": _Guess(gain=0.06),
    "matmul_precision": _Guess(gain=0.1),
    "persistent_workers": _Guess(gain=0.05),
    "prefetch_factor": _Guess(gain=0.04),
}
"""Without being asked for by name only these are tried: others change the training, only save
memory, or are the defaults of torch already."""
_RANKS: Mapping[str, tuple[Any, ...]] = {
    "precision": ("bf16", "tf32", "fp16"),
    "compile": ("default",),
    "optimizer": ("fused", "foreach"),
    "channels_last": (True,),
    "persistent_workers": (True,),
    "batched_fetch": (True,),
    "pin_memory": (True,),
    "cudnn_benchmark": (True,),
    "matmul_precision": ("high", "medium"),
    "prefetch_factor": (4, 8),
}
"""Values that are tried without being asked for by name, the more promising first; of the other
fields all."""
_SPREAD: tuple[Literal["ddp", "fsdp", "tp", "pp"], ...] = ("ddp", "fsdp", "tp", "pp")
_UNSAID: Mapping[str, Any] = {"parallel": "none"}
"""What is in force where nothing is said of it."""
FEWER = 0.1
"""Fewer workers than there are seldom help: they come late (own choice)."""
_TOLD = ("precision", "channels_last", "compile", "optimizer")
"""Fields whose refusal is a row of its own: people ask for them."""


def fields_asked(only: Any) -> tuple[str, ...] | None:
    """The fields that a search is limited to; ``None`` for all.

    Raises:
        SettingError: A name is no field of ``Settings``.
    """
    if only is None:
        return None
    names = (only,) if isinstance(only, str) else only
    if not isinstance(names, Sequence) or not names:
        raise SettingError(
            f"only={only!r} must be 'loader', or names of settings such as ('precision', 'workers')"
        )
    for name in names:
        if name not in FIELDS:
            raise SettingError(
                f"only={name!r} is no setting: give 'loader', or names among {', '.join(FIELDS)}."
            )
    return tuple(dict.fromkeys(names))


def from_findings(
    findings: Sequence[Mapping[str, Any]], step_ns: float | None, only: tuple[str, ...] | None
) -> Iterator[Candidate]:
    """A candidate for each finding that has a setting, worst first.

    Args:
        findings: ``code``, ``title``, ``setting``, ``saving_ns`` and ``speedup`` of each.
        step_ns: A step, to make shares of savings.
        only: Fields to which the search is limited.
    """
    for found in findings:
        names = set(found["setting"] or ())
        if not names or (only is not None and not names <= set(only)):
            continue
        bound = None
        if found["speedup"]:
            bound = 1 - 1 / found["speedup"]
        elif found["saving_ns"] is not None and step_ns:
            bound = min(1.0, found["saving_ns"] / step_ns)
        yield Candidate(
            change=Settings.from_json(dict(found["setting"])),
            origin=found["code"],
            bound=bound,
            about=found["title"],
        )


def from_offers(
    work: "Workload", effective: Mapping[str, Any], shares: Shares, only: tuple[str, ...] | None
) -> list[Candidate]:
    """What may help although no finding names it, by expected gain and cost.

    Args:
        work: The workload.
        effective: What is in force with the best settings so far.
        shares: What parts of the step are known to take.
        only: Fields to be tried with all of their values; ``None``: the promising ones.
    """
    from workbench.workload.capability import offers

    found: list[tuple[float, Candidate]] = []
    if only is not None and "parallel" in only:
        found += [(0.05 / (1 + place), each) for place, each in enumerate(_spread(work))]
    workers = int(effective.get("workers") or 0)
    on_cpu = str(effective.get("device", "cpu")).startswith("cpu")
    for offer in offers(work):
        if offer.field not in (only or _GUESSES):
            continue
        values = offer.values if only is not None else _values(offer, effective)
        for place, value in enumerate(values):
            if offer.field == "parallel" and value in _SPREAD:
                continue  # see _spread
            if effective.get(offer.field, _UNSAID.get(offer.field)) == value:
                continue
            refused = None if offer.state == "possible" else offer.reason or offer.state
            if refused and only is None and offer.field not in _TOLD:
                continue
            change = _with_companions(offer.field, value, workers)
            bound = shares.bound(change, workers=workers, on_cpu=on_cpu)
            score = _score(offer, place, bound)
            if offer.field == "workers" and value < workers:
                score *= FEWER
            candidate = Candidate(change=change, origin=OFFER, bound=bound, refused=refused)
            found.append((score, candidate))
    return [candidate for _, candidate in sorted(found, key=lambda each: -each[0])]


def _spread(work: "Workload") -> Iterator[Candidate]:
    """Each way to spread the work over ranks; tried only by name, since each block takes seconds.

    What cannot be done here is refused with the reason.
    """
    from workbench.tuning.fresh import check_ranks

    for mode in _SPREAD:
        change, refused = Settings(parallel=mode), None
        try:
            check_ranks(work, change)
        except SettingError as error:
            refused = str(error)
        yield Candidate(change=change, origin=OFFER, refused=refused)


def _values(offer: "Offer", effective: Mapping[str, Any]) -> Sequence[Any]:
    """Those worth trying without being asked for by name, the more promising first."""
    known = _RANKS.get(offer.field)
    if known is not None:
        return [value for value in known if value in offer.values]
    now = effective.get(offer.field) or 0
    if offer.field == "batch_size":
        return sorted(offer.values, key=lambda size: (size <= now, size))
    return sorted(offer.values, reverse=True) if offer.field == "workers" else offer.values


def _score(offer: "Offer", place: int, bound: float | None) -> float:
    """Expected share of the step over cost; of several values of a field the first ones first."""
    guess = _GUESSES.get(offer.field, _Guess(gain=0.05))
    gain = guess.gain
    if offer.factor is not None and offer.factor > 0:
        gain = max(0.0, (1 - offer.factor) / 2)
    if bound is not None:
        gain = min(gain, bound)
    return gain / guess.cost / (1 + place)


def _with_companions(field: str, value: Any, workers: int) -> Settings:
    """The change, with what it cannot act without."""
    change = {field: value}
    if field in {*_WITH_WORKERS, "multiprocessing_context", "worker_threads"} and not workers:
        change["workers"] = 1
    if field == "in_order" and value is False and not workers:
        change["workers"] = 1
    if field == "pin_memory" and value:
        change["non_blocking"] = True
    if field == "non_blocking" and value:
        change["pin_memory"] = True
    needs = {"autocast_cache": ("precision", "bf16"), "loss_scale": ("precision", "fp16")}
    needs |= dict.fromkeys(("compile_dynamic", "compile_fullgraph"), ("compile", "default"))
    if field in needs:
        name, companion = needs[field]
        change[name] = companion
    return Settings(**change)


def is_new(candidate: Candidate, best: Settings, effective: Mapping[str, Any]) -> bool:
    """Whether a change would change anything that is in force."""
    if joined(best, candidate.change) == best:
        return False
    return any(effective.get(name) != value for name, value in candidate.change.to_json().items())
