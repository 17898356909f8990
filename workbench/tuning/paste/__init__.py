"""The best settings as plain torch, to paste into a training script without this package."""

from workbench.tuning.paste.assemble import pasted

__all__ = ["pasted"]
