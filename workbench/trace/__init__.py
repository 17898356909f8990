"""Any trace file becomes one columnar event table."""

from workbench.trace.cache import open_trace
from workbench.trace.pool import read_into_caches
from workbench.trace.ranks import RankFile, RankFiles, find_ranks
from workbench.trace.reader import read

__all__ = ["RankFile", "RankFiles", "find_ranks", "open_trace", "read", "read_into_caches"]
