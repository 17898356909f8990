"""Traces become Chrome JSON again: whole, a slice, or several ranks in one file."""

from workbench.trace.writing.cut import cut
from workbench.trace.writing.write import Written, write_merged, write_trace

__all__ = ["Written", "cut", "write_merged", "write_trace"]
