"""Fair measurements of several settings, whether a switch helped, and the search for the best."""

from workbench.tuning.tune import tune
from workbench.tuning.verify import verify

__all__ = ["tune", "verify"]
