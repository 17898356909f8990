"""Everything that the thread which trains works with."""

from dataclasses import dataclass
from pathlib import Path

from workbench.recording.ownership import Ownership
from workbench.recording.telemetry import Telemetry
from workbench.recording.telemetry_system import TelemetrySampler
from workbench.session.board import Board
from workbench.session.burst_run import BurstReader
from workbench.session.course import Course
from workbench.session.effects import ChangeRow
from workbench.session.orders import Orders
from workbench.session.watching import Watcher
from workbench.settings import Record
from workbench.workload import Workload
from workbench.workload.async_exceptions import Stages


@dataclass(kw_only=True)
class Live:
    """A training: what is wanted of it, what it shows, and where it stands."""

    work: Workload
    folder: Path
    """Where Runs are kept."""
    record: Record
    """What bursts record."""
    board: Board
    orders: Orders
    course: Course
    telemetry: Telemetry
    reader: BurstReader
    watcher: Watcher
    code: Stages
    """Where the user's code runs."""
    owner: Ownership | None = None
    """The right to profile, while it trains."""
    sampler: TelemetrySampler | None = None
    blamed: ChangeRow | None = None
    """The last change: errors soon after it are its fault."""
    whole: bool = True
    """Whether everything is as it was before, but for what is kept."""
    restarts: int = 0
    """How often the loader's workers were started anew since the last good step."""
    _sampled_ns: int = 0

    def sampled_ns(self) -> int:
        """What sampling the machine took, of all trainings together."""
        sampler = self.sampler
        return self._sampled_ns + (0 if sampler is None else sampler.cost_ns)

    def close(self) -> None:
        """After the end: nothing reads or waits any more, and others may profile."""
        self.reader.stop()
        self.orders.close()
        self.course.forget_meters()
        self._sampled_ns, self.sampler = self.sampled_ns(), None
        self.blamed, self.restarts = None, 0
        owner, self.owner = self.owner, None
        if owner is not None:
            owner.release()
