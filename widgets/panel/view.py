"""What the page shows of a session, as plain data: status, changes, findings, trial, Runs."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from workbench.figures.comparison import MARKS, interval_text
from workbench.findings.gain import bound
from workbench.pages.escape import visible
from workbench.pages.evidence import evidence_rows
from workbench.pages.findings import mark, setting_text, where
from workbench.settings import Settings
from workbench.statistics.change import Change
from workbench.units import count_text, share_text, time_text
from workbench.widgets.timeline.places import has_place
from workbench.widgets.words import differing_words, settings_words

EVIDENCE = 12
MOST_SHOWN = 50
"""Newest changes and bursts that the page is told of: what is sent again stays small."""

NEVER = "Record a burst: ten steps under torch.profiler say what is wrong, worst first."
CLEAN = "No finding: no rule fires on what the last burst recorded."

_ACTS = {
    "ready": ("start", "apply"),
    "running": ("pause", "stop", "burst", "apply", "verify"),
    "paused": ("start", "step", "stop", "burst", "apply", "verify"),
    "busy": ("stop",),
    "stopped": ("start", "apply"),
    "failed": ("start", "stop", "apply"),
}


def can(status: str) -> dict[str, bool]:
    """What a button may do in this state; what cannot act is disabled."""
    names = ("start", "pause", "step", "stop", "burst", "apply", "verify")
    return {name: name in _ACTS.get(status, ()) for name in names}


def status_section(state: Any, *, title: str, readonly: bool, changes: int) -> dict[str, Any]:
    """The status line and what the buttons can do."""
    settings = state.settings.to_json()
    pending = None if state.pending is None else state.pending.to_json()
    return {
        "title": visible(title),
        "readonly": readonly,
        "status": state.status,
        "doing": visible(state.doing),
        "error": None if state.error is None else visible(str(state.error)),
        "remedy": None if state.remedy is None else visible(str(state.remedy)),
        "step": state.step,
        "epoch": state.epoch,
        "samples_per_s": number(state.samples_per_s),
        "overhead": cost(state.overhead_ratio),
        "settings": settings,
        "settings_text": visible(settings_words(settings)),
        "notes": [visible(note) for note in state.notes],
        "pending": pending,
        "pending_text": None if pending is None else visible(differing_words(settings, pending)),
        "can": {**can(state.status), "undo": changes > 0 and can(state.status)["apply"]},
    }


def cost(ratio: float | None) -> float | None:
    """What watching takes of a step, from the step with it over the step without it."""
    return None if ratio is None else max(0.0, float(ratio) - 1)


def number(value: Any) -> float | None:
    """A number for JSON; ``None`` for what is none."""
    return float(value) if value is not None and np.isfinite(value) else None


def changes_section(changes: Sequence[Any], dropped: int = 0) -> dict[str, Any]:
    """The newest changes of switches, with the medians of what their effects compare.

    Args:
        changes: Those that the session tells of.
        dropped: How many it had before them.
    """
    rows = [_change(change) for change in changes[-MOST_SHOWN:]]
    last: dict[str, dict[str, str]] = {}
    for change in changes:
        if change.effect is not None and change.error is None:
            names = _fields(change)
            text = effect_text(change.effect, change.per)
            if len(names) > 1:
                text = f"with {len(names) - 1} more: {text}"
            told = {"verdict": change.effect.verdict, "text": f"last time {text}"}
            last.update(dict.fromkeys(names, told))
    return {
        "rows": rows,
        "earlier": dropped + len(changes) - len(rows),
        "fields": last,
        "in_force": number_in_force(changes),
    }


def bursts_section(
    bursts: Sequence[Any], seconds: Callable[[float], float | None]
) -> list[dict[str, float | None]]:
    """When the newest bursts recorded, on the page's clock; no end while one still does."""
    return [
        {
            "from_s": seconds(burst.began_ns),
            "to_s": None if burst.ended_ns is None else seconds(burst.ended_ns),
        }
        for burst in bursts[-MOST_SHOWN:]
        if burst.began_ns is not None and seconds(burst.began_ns) is not None
    ]


def number_in_force(changes: Sequence[Any]) -> int:
    """The number of the last change that came into force; 0 before any."""
    return max((change.number for change in changes if change.applied_ns is not None), default=0)


def _fields(change: Any) -> list[str]:
    before, after = change.before.to_json(), change.after.to_json()
    return [n for n in {**before, **after} if before.get(n) != after.get(n)]


def _change(change: Any) -> dict[str, Any]:
    effect = change.effect
    each = " a sample" if change.per == "sample" else ""
    before, after = (
        time_text(ns) + (each if ns is not None else "")
        for ns in (change.before_ns, change.after_ns)
    )
    return {
        "number": change.number,
        "step": count_text(change.step),
        "text": visible(differing_words(change.before.to_json(), change.after.to_json())),
        "error": visible(change.error) if change.error else None,
        "verdict": "" if effect is None else effect.verdict,
        "effect": "too few steps to tell" if effect is None else effect_text(effect, change.per),
        "note": visible(change.note or ""),
        "before": before,
        "after": after,
    }


def effect_text(change: Change, per: str = "step") -> str:
    """A change in words: ▲ 31 % (28–34) less time."""
    sign = MARKS[change.verdict]
    if change.ratio is None or change.low is None or change.high is None:
        return f"{sign} cannot tell"
    whose = " a sample" if per == "sample" else ""
    return f"{sign} {interval_text(change.ratio, change.low, change.high)} time{whose}"


def findings_section(
    run: Any | None, findings: Sequence[Any] | None, settings: Settings
) -> dict[str, Any]:
    """The findings of the last recording, worst first; ``settings`` are those in force now."""
    if run is None or findings is None:
        return {"run": None, "under": None, "measured": None, "rows": [], "empty": NEVER}
    rows = [_finding(i, found) for i, found in enumerate(findings)]
    return {
        "run": visible(run.name),
        "under": other_settings(run, settings),
        "measured": measured_words(run),
        "rows": rows,
        "empty": CLEAN,
    }


def other_settings(run: Any, settings: Settings) -> str | None:
    """What a Run was recorded under, where other settings are in force now."""
    recorded = {} if run.record is None else Settings.from_json(run.record.settings).to_json()
    if recorded == settings.to_json():
        return None
    was, now = (visible(settings_words(each)) for each in (recorded, settings.to_json()))
    return f"Recorded under other settings ({was}) than those in force now ({now})."


def measured_words(run: Any) -> str | None:
    """Which steps the numbers of a recording are of: never of those that the profiler slows."""
    timings = None if run.record is None else run.record.timings
    if timings is None:
        return None
    without, under = timings.step_ns[timings.warmup :], len(timings.profiled_step_ns)
    recorded = f"{count_text(under)} step{'' if under == 1 else 's'} under torch.profiler"
    if not without:
        return f"From {recorded}; none was measured without it, so step times here are longer."
    median = time_text(float(np.median(without)))
    return (
        f"From {recorded}. Step times of record are of {count_text(len(without))} steps without "
        f"it, median {median}; the charts leave recorded steps out."
    )


def _finding(i: int, found: Any) -> dict[str, Any]:
    about = visible(" · ".join(part for part in (found.code, where(found)) if part))
    setting = setting_text(found)
    return {
        "id": str(i),
        "mark": mark(found),
        "severity": found.severity if found.verdict == "yes" else "",
        "title": visible(found.title),
        "advice": visible(found.advice),
        "evidence": evidence_rows(found.evidence)[:EVIDENCE],
        "about": about,
        "bound": bound(found),
        "setting": None if setting is None else visible(setting),
        "can_try": bool(found.setting) and found.verdict != "no",
        "can_show": has_place(found.code),
    }


def trial_section(trial: Any | None, *, finding: str | None, kept: bool | None) -> Any:
    """A trial of a setting: still measuring, or how it came out."""
    if trial is None:
        return None
    answer = trial.verification
    found = {
        "status": trial.status,
        "what": visible(trial_words(trial)),
        "finding": finding,
        "running": trial.status in RUNNING,
        "sentence": None,
        "advice": None,
        "gain": None,
        "parity": None,
        "bound": None,
        "error": None if trial.error is None else visible(str(trial.error)),
        "kept": kept,
    }
    if answer is not None:
        found["sentence"] = visible(answer.sentence)
        found["advice"] = answer.advice
        found["gain"] = effect_text(answer.change)
        found["parity"] = None if answer.parity is None else visible(answer.parity.reason)
        if answer.bound is not None:
            found["bound"] = f"{share_text(answer.bound.saving)} less time, said the finding"
    return found


RUNNING = ("waiting", "running")


def trial_words(trial: Any) -> str:
    """What is tried."""
    asked = trial.asked
    values = asked.to_json() if isinstance(asked, Settings) else asked.setting
    return settings_words(values or {})


def burst_words(burst: Any | None) -> str | None:
    """What a burst is at, for its button; ``None`` when none is under way."""
    words = {
        "waiting": "Burst: waits for a step…",
        "recording": "Burst: recording…",
        "reading": "Burst: reading…",
    }
    return None if burst is None else words.get(burst.status)
