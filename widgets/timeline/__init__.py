"""The timeline in a notebook with a kernel: what is selected there is a value for the next cell."""

from workbench.machine.audience import headless
from workbench.widgets.timeline.selection import Selection
from workbench.widgets.timeline.widget import Timeline

__all__ = ["Selection", "Timeline", "headless"]
