"""Widgets; the only room that imports ipywidgets, anywidget or IPython."""

from workbench.widgets.switches import Switches

__all__ = ["Switches"]
