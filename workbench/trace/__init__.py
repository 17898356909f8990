"""Any trace file becomes one columnar event table."""

from workbench.trace.reader import read

__all__ = ["read"]
