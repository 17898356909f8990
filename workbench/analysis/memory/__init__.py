"""Memory over time: who holds it at the peak, what grows, and what a step asks for."""

from workbench.analysis.memory.summary import (
    CPU,
    DEVICE_ALLOCATION,
    MemorySummary,
    memory_summary,
)

__all__ = ["CPU", "DEVICE_ALLOCATION", "MemorySummary", "memory_summary"]
