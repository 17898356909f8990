"""Several ranks: what launches them, and what their collectives cost."""

from workbench.parallel.collectives_bench import collectives
from workbench.parallel.collectives_costs import CollectiveCosts
from workbench.parallel.launched import Launched, launched

__all__ = ["CollectiveCosts", "Launched", "collectives", "launched"]
