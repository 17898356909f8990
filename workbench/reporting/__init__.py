"""Reports: a notebook executed by papermill, exported as one HTML file."""

from workbench.reporting.report import report

__all__ = ["report"]
