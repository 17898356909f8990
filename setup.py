"""Packages for setuptools: one folder of code and two of data lie beside ``workbench/``.

``workbench/widgets``, ``workbench/_notebooks`` and ``workbench/_cards`` are committed symlinks, so
that editors and type checkers follow them. The mapping below is what installs use: it also works
where a checkout or an sdist has no symlinks. Everything else is in pyproject.toml.
"""

from setuptools import find_packages, setup

BESIDE = {
    "workbench.widgets": "widgets",
    "workbench._notebooks": "notebooks",
    "workbench._cards": "datasets",
}

inside = find_packages(
    include=["workbench", "workbench.*"],
    exclude=[name + tail for name in BESIDE for tail in ("", ".*")],
)
below_widgets = [f"workbench.widgets.{name}" for name in find_packages("widgets")]

setup(packages=[*inside, *BESIDE, *below_widgets], package_dir=BESIDE)
