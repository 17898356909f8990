"""Figures: a result goes in, a plotly figure comes out; nothing here shows anything.

Every function returns a figure. When there is nothing to draw, the figure says what was not
measured, why, and what to do next; it never draws zeros.
"""
