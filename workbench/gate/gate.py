"""``workbench.gate.gate``: is the head worse than the base, or than a budget allows?"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import GateError
from workbench.gate.budget import Budget, budget_of, read_budget
from workbench.gate.common_shift import CommonShift, common_shift, without
from workbench.gate.fingerprint import fingerprint, machine_differences, software_differences
from workbench.gate.judging import Case, Judged, Verdict, judge_tested, tested
from workbench.gate.metrics import METRICS, Metric
from workbench.gate.sample import Sample, Side
from workbench.gate.singles import judge_count, judge_limit, judge_value, not_measured
from workbench.gate.sources import Sides, sides_of, sides_of_verification, verification_in

if TYPE_CHECKING:
    pass

PASS, FAIL, NOT_MEASURED, CANNOT_TELL = 0, 1, 2, 3
"""Exit codes; the last one only when asked to be strict."""

Given = "str | Path | Run | Sequence[str | Path | Run]"


@dataclass(frozen=True, kw_only=True)
class Gate:
    """The verdict on every metric, and on all of them together."""

    judged: tuple[Judged, ...]
    level: float
    base: str | None
    head: str
    interleaved: bool
    notes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    """In what the machine of the baseline differs: then times were not compared."""
    common: CommonShift | None = None
    fingerprints: Mapping[str, str | None] = field(default_factory=dict)

    @property
    def failed(self) -> tuple[Judged, ...]:
        """What became worse."""
        return tuple(each for each in self.judged if each.verdict == "fail")

    @property
    def measured(self) -> bool:
        """Whether anything could be judged at all, and nothing was refused."""
        known = any(each.chance is not None or each.head is not None for each in self.judged)
        return known and not self.refused

    @property
    def verdict(self) -> Verdict:
        """``fail`` if anything failed; ``cannot_tell`` if what leads cannot be told."""
        if self.failed:
            return "fail"
        unknown = [e for e in self.judged if e.verdict == "cannot_tell" and _leads(e)]
        return "cannot_tell" if unknown or self.refused or self.common else "pass"

    def exit_code(self, *, strict: bool = False) -> int:
        """0 passed, 1 failed, 2 could not be measured, 3 cannot tell and asked to be strict."""
        if self.failed:
            return FAIL
        if not self.measured:
            return NOT_MEASURED
        return CANNOT_TELL if strict and self.verdict == "cannot_tell" else PASS

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        from workbench.gate.text import sentence

        return sentence(self)

    def to_json(self) -> dict[str, Any]:
        """The document ``workbench.gate/1``."""
        from workbench.gate.document import gate_document

        return gate_document(self)

    def write(self, folder: str | Path) -> Path:
        """Write ``gate.json``, ``summary.md``, ``junit.xml`` and ``gate.html``, each whole."""
        from workbench.gate.document import write_gate

        return write_gate(self, Path(folder))

    def check(self, *, strict: bool = False) -> None:
        """Raise where the exit code would not be 0: a plain error that a notebook cannot hide.

        Raises:
            GateError: With the table of what failed.
        """
        if self.exit_code(strict=strict) != PASS:
            raise GateError(f"{self.sentence}\n{self!r}")

    def __repr__(self) -> str:
        from workbench.gate.text import gate_text

        return gate_text(self)

    def _repr_html_(self) -> str:
        from workbench.gate.html import gate_html

        return gate_html(self)


def gate(
    base: Any = None,
    head: Any = None,
    *,
    budget: "str | Path | Mapping[str, Any] | Budget | None" = None,
    counters_only: bool = False,
) -> Gate:
    """Judge whether a head is worse than its base, or than a budget allows.

    Args:
        base: A Run, its folder, a trace, a folder of Runs, or several Runs of the same thing; a
            verification alone holds both sides. May be left out with absolute limits in ``budget``.
        head: The same for what is judged.
        budget: A file, or its content as plain data: see ``docs/gate.md``.
        counters_only: Judge only what the same code gives every time, on any machine.

    Raises:
        GateError: There is nothing to judge, or the budget says something nobody can judge.
    """
    budget = _budget(budget)
    bases, heads = _both(base, head, budget)
    return gate_sides(bases, heads, budget=budget, counters_only=counters_only)


def gate_sides(
    bases: Sides, heads: Sides, *, budget: Budget | None = None, counters_only: bool = False
) -> Gate:
    """The same over what was measured already."""
    budget = budget or Budget()
    refused, notes = _machines(bases, heads)
    pairs = [(name, bases.get(name), side) for name, side in heads.items()]
    if bases and not any(one for _, one, _ in pairs):
        raise GateError("base and head have no workload in common: their folders' names differ.")
    cases = [
        case
        for name, one, other in pairs
        for case in _cases(name, one, other, budget)
        if not (counters_only or refused) or case.metric.kind == "count"
    ]
    judged, common = _judge(cases, budget.level)
    missing = sorted(bases.keys() - heads.keys())
    notes = [*notes, *(f"{name} is in the base only" for name in missing)]
    first_base = next(iter(bases.values()), None)
    return Gate(
        judged=tuple(judged),
        level=budget.level,
        base=None if first_base is None else _name(bases),
        head=_name(heads),
        interleaved=any(_in_turns(one, other) for _, one, other in pairs),
        notes=tuple(notes),
        refused=() if counters_only else refused,
        common=common,
        fingerprints={
            "base": None if first_base is None else fingerprint(first_base.environment),
            "head": fingerprint(next(iter(heads.values())).environment),
        },
    )


def _both(base: Any, head: Any, budget: Budget) -> tuple[Sides, Sides]:
    if head is None and isinstance(base, str | Path):
        found = verification_in(base)
        if found is not None:
            return sides_of_verification(found)
    if head is None:
        raise GateError("the gate needs a head to judge: --head RUN, or a verification as --base.")
    if base is None and not budget.absolute:
        raise GateError(
            "without a baseline the gate needs absolute limits: give --base RUN, or a budget with "
            "at_most or at_least."
        )
    return {} if base is None else sides_of(_listed(base), "base"), sides_of(_listed(head), "head")


def _listed(given: Any) -> Sequence[Any]:
    return list(given) if isinstance(given, list | tuple) else [given]


def _budget(given: Any) -> Budget:
    if given is None or isinstance(given, Budget):
        return given or Budget()
    return budget_of(given) if isinstance(given, Mapping) else read_budget(given)


def _cases(name: str, base: Side | None, head: Side, budget: Budget) -> Iterable[Case]:
    turns = _in_turns(base, head)
    for metric in METRICS:
        rule = budget.rule(metric)
        if rule.off:
            continue
        mine = head.samples.get(metric.name, Sample(reason="not measured"))
        theirs = None if base is None else base.samples.get(metric.name, Sample())
        limited = rule.at_most is not None or rule.at_least is not None
        if base is not None or limited:
            yield Case(
                workload=name,
                metric=metric,
                rule=rule,
                base=theirs,
                head=mine,
                interleaved=turns and not (mine.apart or (theirs is not None and theirs.apart)),
            )


def _judge(cases: Sequence[Case], level: float) -> tuple[list[Judged], CommonShift | None]:
    limits = [judge_limit(c) for c in cases if _limited(c)]
    relative = [c for c in cases if c.base is not None]
    found = {_key(c): t for c in relative if (t := _tested(c)) is not None}
    common = common_shift(found)
    together = judge_tested(found if common is None else without(found, common), level=level)
    judged = []
    for case in relative:
        key = _key(case)
        if key in together:
            one = together[key]
        elif case.metric.kind == "value":
            one = judge_value(case)
        elif case.metric.kind == "count":
            one = judge_count(case)
        else:
            one = not_measured(case)
        if one.base is not None or one.head is not None or _leads(one):
            judged.append(one)
    return [*limits, *judged], common


def _tested(case: Case) -> Any:
    return tested(case) if case.metric.kind in ("times", "parts") else None


def _limited(case: Case) -> bool:
    return case.rule.at_most is not None or case.rule.at_least is not None


def _key(case: Case) -> str:
    return f"{case.workload}: {case.metric.name}" if case.workload else case.metric.name


def _leads(judged: Judged) -> bool:
    return judged.metric.leads or judged.limit is not None


def _in_turns(base: Side | None, head: Side) -> bool:
    return base is not None and base.turns is not None and base.turns == head.turns


def _name(sides: Sides) -> str:
    if list(sides) == [""]:
        return sides[""].name
    return f"{len(sides)} workloads"


def _machines(bases: Sides, heads: Sides) -> tuple[tuple[str, ...], list[str]]:
    """In what the machines differ, and what is said of versions."""
    different: dict[str, None] = {}
    said: dict[str, None] = {}
    for name, head in heads.items():
        base = bases.get(name)
        if base is None:
            continue
        different.update(dict.fromkeys(machine_differences(base.environment, head.environment)))
        software = software_differences(base.environment, head.environment)
        said.update(dict.fromkeys(software))
    notes = [f"versions differ: {', '.join(said)}"] if said else []
    return tuple(different), notes


def renamed(found: Gate, *, base: str, head: str, notes: Sequence[str] = ()) -> Gate:
    """The same gate with other names of its sides, and more notes."""
    return replace(found, base=base, head=head, notes=(*found.notes, *notes))


__all__ = ["Gate", "Metric", "gate", "gate_sides", "renamed"]
