"""A panel without a kernel or a page, and a finding to show in it."""

import json
import time
from pathlib import Path
from typing import Any

from tests.widgets.standin import StandIn
from workbench.findings import Finding
from workbench.widgets.panel.desk import Desk
from workbench.widgets.panel.runs import Shelf
from workbench.widgets.panel.widget import Panel

FINDING = Finding(
    code="WB101",
    title="The step waits for data",
    verdict="yes",
    severity="critical",
    evidence={"input_share": 0.39},
    advice="Load in worker processes.",
    setting={"workers": 2},
    saving_ns_per_step_at_most=7e6,
)


class Kernel:
    """A panel whose messages are kept instead of sent."""

    def __init__(self, folder: Path, **more: Any) -> None:
        self.session = StandIn()
        self.desk = Desk(self.session, shelf=Shelf(folder), title="digits", **more)
        self.panel = Panel(self.desk)
        self.said: list[dict[str, Any]] = []
        self.panel._say = self._keep  # type: ignore[method-assign, assignment]

    def _keep(self, content: Any, buffers: Any = None) -> None:
        self.said.append(json.loads(json.dumps(content)))  # nothing but plain data may leave

    def page(self, kind: str, **more: Any) -> dict[str, Any]:
        """What is answered to a message of a page."""
        ticket = f"t{len(self.said)}"
        self.panel._receive(None, {"kind": kind, "ticket": ticket, **more}, [])
        return self.wait_for(lambda one: one["kind"] == "answer" and one["ticket"] == ticket)

    def wait_for(self, wanted: Any) -> dict[str, Any]:
        """The first message that is wanted."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            found = next((one for one in list(self.said) if wanted(one)), None)
            if found is not None:
                return found
            time.sleep(0.01)
        raise AssertionError(f"never said: {self.said[-3:]}")

    def section(self, name: str) -> Any:
        return json.loads(json.dumps(self.desk.sections()[name]))
