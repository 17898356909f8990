"""Fair measurements of several settings, whether a switch helped, and whether the numbers agree."""

from workbench.tuning.verify import verify

__all__ = ["verify"]
