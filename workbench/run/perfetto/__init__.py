"""The Perfetto UI over one trace, served by this process to this machine only."""

from workbench.run.perfetto.view import PerfettoView, open_perfetto

__all__ = ["PerfettoView", "open_perfetto"]
