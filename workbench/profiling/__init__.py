"""Record a training loop and hand back a Run: ``wb.profile`` and ``wb.capture``."""

from workbench.profiling.capture import Capture, capture
from workbench.profiling.profile import profile

__all__ = ["Capture", "capture", "profile"]
