"""Remember the whole state of a training loop, and put it back byte for byte."""

from workbench.workload.snapshot.state import Snapshot

__all__ = ["Snapshot"]
