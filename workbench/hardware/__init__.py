"""What accelerators can do by their datasheets: dense figures, with source and date."""

from workbench.hardware.table import Accelerator, accelerators, find

__all__ = ["Accelerator", "accelerators", "find"]
