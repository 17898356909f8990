"""From what a person names to two sides: Runs, folders of Runs, traces, verifications."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import GateError
from workbench.gate.sample import Sample, Side, joined

if TYPE_CHECKING:
    from workbench.run.run import Run

ENDING = ".verification.json"
SCHEMA = "workbench.verification/1"
Sides = dict[str, Side]
"""By the name of the workload; one workload alone has the empty name."""


def sides_of(given: "Sequence[str | Path | Run]", what: str) -> Sides:
    """The workloads of one side.

    Several Runs of one side are repeats of the same thing. One folder that holds several Runs is
    several workloads, told apart by the names of their folders.

    Raises:
        GateError: Nothing was named, or folders of several Runs are mixed with others.
    """
    if not given:
        raise GateError(f"{what} names nothing: give a Run folder, a trace, or a folder of Runs.")
    found = [_sides(each, what) for each in given]
    if len(found) == 1:
        return found[0]
    names = dict.fromkeys(name for each in found for name in each)
    return {name: joined([each[name] for each in found if name in each]) for name in names}


def _sides(given: "str | Path | Run", what: str) -> Sides:
    from workbench.gate.measured import side_of
    from workbench.run.run import Run
    from workbench.run.source import open_run

    if isinstance(given, Run):
        return {"": side_of(given)}
    path = Path(given).expanduser()
    if not path.exists():
        raise GateError(
            f"{what} {path} does not exist: give a Run folder, a trace, or a folder of Runs."
        )
    held = [] if not path.is_dir() else sorted(p.parent for p in path.glob("*/run.json"))
    if (path / "run.json").is_file() or not held:
        return {"": side_of(open_run(path))}
    return {each.name: side_of(open_run(each)) for each in held}


def verification_in(path: str | Path) -> Path | None:
    """The verification that a path names, or the only one in a folder; ``None`` for none."""
    path = Path(path)
    if path.is_file():
        return path if path.name.endswith(ENDING) else None
    found = sorted(path.glob(f"*{ENDING}")) if path.is_dir() else []
    return found[0] if len(found) == 1 else None


def sides_of_verification(path: Path) -> tuple[Sides, Sides]:
    """Without the setting, and with it, as they were measured in turns.

    Raises:
        GateError: The file is no verification, or one of its sides was not measured.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise GateError(f"{path.name} cannot be read as a verification: {error}.") from error
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise GateError(f"{path.name} is no verification of wb.verify ({SCHEMA}).")
    trials = found.get("trials") or []
    if len(trials) < 2 or not all(trial.get("blocks") for trial in trials[:2]):
        raise GateError(f"{path.name}: one of the two sides was not measured; verify again.")
    base = [side_of_trial(trial, "without", turns=path.name) for trial in trials[:1] + trials[2:3]]
    return {"": joined(base)}, {"": side_of_trial(trials[1], "with", turns=path.name)}


def side_of_trial(trial: dict[str, Any], name: str, *, turns: str) -> Side:
    """A side from a trial's document, without waits for processors that others held."""
    blocks = [_clean(block) for block in trial["blocks"]]
    waits = [tuple(us * 1000 for us in block["input_us"]) for block in trial["blocks"]]
    samples = {"step_time": Sample(blocks=tuple(blocks))}
    if each := trial.get("samples_per_step"):
        rates = tuple(tuple(each * 1e9 / ns for ns in block) for block in blocks)
        samples["throughput"] = Sample(blocks=rates)
    steps = [ns for block in blocks for ns in block]
    if steps and any(waits):
        step = sum(steps) / len(steps)
        samples["exposed_input"] = Sample(blocks=tuple(w for w in waits if w), step=step)
    for metric, key in (("peak_memory", "device_peak_bytes"), ("compile_time", "compile_s")):
        value = trial.get(key)
        if value is None and metric == "peak_memory":
            value = trial.get("peak_rss_bytes")
        if value is not None:
            samples[metric] = Sample(values=(float(value),))
    return Side(name=name, samples=samples, turns=turns)


def _clean(block: dict[str, Any]) -> tuple[float, ...]:
    steps, waits, share = block["step_us"], block.get("delay_us"), block.get("delay_share")
    if waits is None or share is None:
        return tuple(us * 1000 for us in steps)
    pairs = zip(steps, waits, strict=True)
    return tuple(max(us - share * wait, 0.05 * us) * 1000 for us, wait in pairs)
