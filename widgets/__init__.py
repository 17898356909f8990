"""Widgets; the only room that imports ipywidgets, anywidget or IPython."""
