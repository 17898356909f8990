"""The live panel: status, switches, charts, findings and Runs of one training."""

from workbench.widgets.panel.entry import panel
from workbench.widgets.panel.widget import Panel

__all__ = ["Panel", "panel"]
