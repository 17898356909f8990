"""The process that measures one revision, block by block, as it is told on its standard input.

It is started with our own package already chosen, so that the code of a revision is measured by
this version of the workbench, whatever lies in its folder.
"""

import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.workload import Workload

COUNTED = (4, 12)
"""Steps of the two blocks whose instructions are counted: the difference is that of the steps."""
Answer = dict[str, Any]


def main() -> None:
    """Answer one order a line, until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # what the user's code prints is no answer
    top = Path(sys.argv[1])
    sys.path[:0] = [str(Path.cwd()), str(top), str(top / "src")]
    measuring = _Side(top)
    for line in sys.stdin:
        order = json.loads(line)
        _answer(answers, measuring, order.pop("do"), order)


def _answer(answers: IO[str], side: "_Side", do: str, order: Answer) -> None:
    orders: dict[str, Callable[..., Answer]] = {
        "load": side.load,
        "warm_up": side.warm_up,
        "block": side.block,
        "profile": side.profile,
        "count": side.count,
    }
    try:
        found = orders[do](**order)
    except Exception as error:  # noqa: BLE001 - of the user's code, and told
        found = {"error": f"{type(error).__name__}: {error}"}
    answers.write(json.dumps(found) + "\n")


class _Side:
    def __init__(self, top: Path) -> None:
        self._top = top
        self._work: Workload

    def load(self, workload: str) -> Answer:
        """Make the workload, and see that it is this revision's."""
        from workbench.settings import Settings
        from workbench.workload import Workload

        module, _, function = workload.partition(":")
        loaded = importlib.import_module(module)
        file = Path(loaded.__file__ or "").resolve()
        if not file.is_relative_to(self._top.resolve()):
            raise ImportError(
                f"{module} was not loaded from the revision but from an installed package; "
                "let the revision hold it"
            )
        made = getattr(loaded, function)()
        if not isinstance(made, Workload):
            raise TypeError(f"{workload} gave a {type(made).__name__}, not a workbench.Workload")
        self._work, self._settings = made, Settings()
        return {}

    def _measuring(self) -> Any:
        from workbench.recording.progress import Progress
        from workbench.tuning.block import Measuring

        return Measuring(progress=Progress(shown=False, title=""))

    def warm_up(self) -> Answer:
        """Steps until they are steady; compilation is in them."""
        from workbench.tuning.block import warm_up

        times, about = warm_up(self._work, self._settings, self._measuring(), time_limit_s=None)
        return {"warmup_ns": list(times), "compilation": about.compilation.to_json()}

    def block(self, position: int, steps: int) -> Answer:
        """One block, from the same start as every other."""
        from workbench.tuning.block import measure

        found = measure(
            self._work,
            self._settings,
            self._measuring(),
            position=position,
            steps=lambda _, workers: max(steps, 3 * max(workers, 1)),
            time_limit_s=None,
        )
        assert found is not None
        block, about = found
        clean = block.undisturbed_ns
        return {
            "step_ns": list(block.step_ns),
            "undisturbed_ns": None if clean is None else list(clean),
            "input_ns": list(block.input_ns),
            "samples": list(block.samples),
            "workers": about.effective.get("workers") or 0,
            "device": str(about.effective.get("device")),
        }

    def count(self) -> Answer:
        """Instructions a step, as far as the processor may be asked."""
        from workbench.machine.instructions import Instructions

        counter = Instructions()
        if not counter.available:
            return {"instructions": None}
        used = []
        for steps in COUNTED:
            before = counter.read() or 0
            self.block(0, steps)
            used.append((counter.read() or 0) - before)
        counter.close()
        return {"instructions": (used[1] - used[0]) / (COUNTED[1] - COUNTED[0])}

    def profile(self, folder: str) -> Answer:
        """A Run with a profiled window, for counts and the parts of a step."""
        from workbench.profiling import profile
        from workbench.settings import Record

        run = profile(
            self._work,
            self._settings,
            steps=8,
            record=Record(shapes=True),
            folder=Path(folder),
            progress=False,
        )
        return {"run": str(run.traces[0].parent)}


if __name__ == "__main__":
    main()
