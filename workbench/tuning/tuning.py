"""What ``wb.tune`` hands back: the best settings, every trial, and how it came to them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.figures.comparison import interval_text
from workbench.settings import Settings
from workbench.tuning.attempt import NOTHING_HELPS, Attempt, why_nothing
from workbench.tuning.search import Ended
from workbench.tuning.telling import kept_text, named

if TYPE_CHECKING:
    import pandas as pd

    from workbench.pages.static import StaticFigure
    from workbench.pages.tuning import TuningView
    from workbench.tuning.sweep import LoaderSweep

SCHEMA = "workbench.tuning/1"
AS_IT_IS = "as it is"
_DOUBTFUL = ("differs", "diverges")
_SHARES = ("gain", "gain_low", "gain_high")


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """The best settings of a search, and everything that was tried on the way.

    Times are nanoseconds; ``None`` and NaN mean not measured.
    """

    title: str
    """Of the workload."""
    best: Settings
    attempts: tuple[Attempt, ...] = field(repr=False)
    """In the order in which they were tried."""
    lines: tuple[str, ...] = field(repr=False)
    """The history, a line a decision."""
    ended: Ended
    look: Mapping[str, Any] = field(repr=False)
    """The loop as it is: step time, noise, memory, and what was in force."""
    overall: Mapping[str, Any] | None = field(default=None, repr=False)
    """All that was kept against the loop as it is, where more than one change was."""
    sweep: "LoaderSweep | None" = field(default=None, repr=False)
    """The sweep of the loader, where only that was asked for."""
    elapsed_s: float = field(compare=False)
    """Of this call; what a search before it had measured is not measured again."""
    folder: Path = field(compare=False)

    @property
    def trials(self) -> "pd.DataFrame":
        """A row for the loop as it is, then one for each change that was tried or refused."""
        import pandas as pd

        from workbench.run.shown import with_shares

        table = pd.DataFrame([_as_it_is(self.look), *(map(_row, self.attempts))])
        return with_shares(table, *_SHARES)

    @property
    def history(self) -> str:
        """What was done and why, a numbered line each."""
        return "\n".join(f"{n}. {line}" for n, line in enumerate(self.lines, start=1))

    @property
    def pareto(self) -> "pd.DataFrame":
        """What nothing else beats in both time and memory, fastest first.

        Settings whose numbers differ are left out. Memory is that of the device where there is
        one, else of this process and its loader's processes.
        """
        import pandas as pd

        from workbench.run.shown import Shown

        points = [_as_it_is(self.look), *(map(_row, self.attempts))]
        known = [_point(p) for p in points if p["parity"] not in _DOUBTFUL]
        whole = [p for p in known if p["time_ns"] is not None and p["memory_bytes"] is not None]
        best = [p for p in whole if not any(_beats(other, p) for other in whole)]
        columns = ["settings", "time_ns", "memory_bytes", "loss", "parity"]
        ranked = sorted(best, key=lambda p: float(p["time_ns"]))
        table = pd.DataFrame(ranked, columns=columns)
        return Shown(table.drop_duplicates("settings", ignore_index=True))

    @property
    def sentence(self) -> str:
        """What came of it, in one sentence."""
        if not self.best.changes():
            why = why_nothing(self.attempts) if self.sweep is None else NOTHING_HELPS
            return f"≈ {self.title}: {why}; it stays as it is."
        return f"▲ {self.title} with {self.best}: {self._gain()}."

    def _gain(self) -> str:
        kept = [attempt for attempt in self.attempts if attempt.kept]
        found = self.overall
        if found is None and len(kept) == 1:
            found = {name: getattr(kept[0], name) for name in ("ratio", "low", "high", "per")}
        if found is None or found["low"] is None:
            return f"about {kept_text(kept) or 'the same'} time; not measured together"
        return f"{interval_text(found['ratio'], found['low'], found['high'])} time a {found['per']}"

    def code(self) -> str:
        """The best settings as plain torch, to paste; nothing of this package is in it."""
        from workbench.tuning.paste import pasted

        return pasted(self.best, self.look, self.title)

    def figure(self) -> "StaticFigure":
        """The step time of every trial with its interval; what was kept is filled.

        Of a sweep of the loader: the step against the workers.
        """
        if self.sweep is not None:
            return self.sweep.figure()
        from workbench.pages.tuning import trials_chart

        return trials_chart(self._view())

    def to_json(self) -> dict[str, Any]:
        """Everything as plain data, schema ``workbench.tuning/1``; ``null`` means not measured."""
        return {
            "schema": SCHEMA,
            "title": self.title,
            "best": self.best.to_json(),
            "sentence": self.sentence,
            "ended": self.ended,
            "elapsed_s": self.elapsed_s,
            "as_it_is": dict(self.look),
            "together": None if self.overall is None else dict(self.overall),
            "trials": [attempt.to_json() for attempt in self.attempts],
            "pareto": [
                {name: (None if value != value else value) for name, value in row.items()}  # noqa: PLR0124 - NaN
                for row in self.pareto.to_dict("records")
            ],
            "history": list(self.lines),
            "sweep": None if self.sweep is None else self.sweep.to_json(),
            "code": self.code(),
        }

    def __repr__(self) -> str:
        from workbench.pages.tuning import tuning_text

        return tuning_text(self._view())

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        from workbench.pages.tuning import tuning_html

        return {"text/html": tuning_html(self._view()), "text/plain": repr(self)}

    def _view(self) -> "TuningView":
        from workbench.pages.tuning import TuningView

        per_sample = any(attempt.per == "sample" for attempt in self.attempts)
        rows = [_as_it_is(self.look), *(map(_row, self.attempts))]
        return TuningView(
            sentence=self.sentence,
            rows=[_shown(row, per_sample=per_sample) for row in rows],
            per="sample" if per_sample else "step",
            lines=self.lines,
            code=self.code(),
            place=str(self.folder),
        )


def _row(attempt: Attempt) -> dict[str, Any]:
    ratio, low, high = attempt.ratio, attempt.low, attempt.high
    return {
        "setting": named(attempt.change),
        "settings": str(attempt.settings),
        "origin": attempt.origin,
        "outcome": attempt.outcome,
        "decision": attempt.decision,
        "kept": attempt.kept,
        "step_ns": attempt.step_ns,
        "sample_ns": attempt.sample_ns,
        "base_step_ns": attempt.base_step_ns,
        "base_sample_ns": attempt.base_sample_ns,
        "gain": None if ratio is None else 1 - ratio,
        "gain_low": None if high is None else 1 - high,
        "gain_high": None if low is None else 1 - low,
        "per": attempt.per,
        "memory_bytes": attempt.memory_bytes,
        "device_bytes": attempt.device_bytes,
        "parity": None if attempt.parity is None else attempt.parity.verdict,
        "loss": attempt.loss,
        "compile_s": attempt.compile_s,
        "break_even_steps": attempt.break_even_steps,
        "blocks": attempt.blocks,
        "seconds": attempt.seconds,
        "reason": attempt.reason,
    }


def _as_it_is(look: Mapping[str, Any]) -> dict[str, Any]:
    names = ("step_ns", "sample_ns", "memory_bytes", "device_bytes", "loss", "seconds")
    blank = dict.fromkeys(_row(_BLANK))
    told = {"setting": AS_IT_IS, "settings": AS_IT_IS, "outcome": "measured", "kept": False}
    return blank | told | {"reason": "", "per": "step"} | {name: look.get(name) for name in names}


_BLANK = Attempt(
    change=Settings(),
    base=Settings(),
    origin="",
    outcome="not_measured",
    decision="not tried",
    reason="",
)


def _point(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "settings": row["settings"],
        "time_ns": row["sample_ns"] or row["step_ns"],
        "memory_bytes": row["device_bytes"] or row["memory_bytes"],
        "loss": row["loss"],
        "parity": row["parity"],
    }


def _beats(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    pairs = [(float(a[name]), float(b[name])) for name in ("time_ns", "memory_bytes")]
    return all(x <= y for x, y in pairs) and any(x < y for x, y in pairs)


def _shown(row: Mapping[str, Any], *, per_sample: bool) -> dict[str, Any]:
    """A row with one time and its interval, for the figure and the table."""
    name = "sample_ns" if per_sample else "step_ns"
    base, low, high = row[f"base_{name}"], row["gain_high"], row["gain_low"]
    known = base is not None and low is not None and high is not None
    return {
        **row,
        "time_ns": row[name],
        "without_ns": base,
        "low_ns": base * (1 - low) if known else None,
        "high_ns": base * (1 - high) if known else None,
    }
