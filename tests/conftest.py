"""What every test may ask for: where the real traces are, and when their absence is an error."""

import os
from pathlib import Path

import pytest

_VARIABLE = "WORKBENCH_TRACES"


@pytest.fixture(scope="session")
def traces_root() -> Path:
    """The folder of real traces recorded by others; only for tests marked ``traces``."""
    return Path(os.environ[_VARIABLE])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests that need the real traces where there are none; in CI that is an error."""
    if os.environ.get(_VARIABLE):
        return
    needing = [item for item in items if item.get_closest_marker("traces")]
    if not needing:
        return
    reason = f"{len(needing)} tests need real traces: set {_VARIABLE} to their folder"
    if os.environ.get("CI") == "true":
        raise pytest.UsageError(f"{reason} (in CI they must run).")
    items[:] = [item for item in items if not item.get_closest_marker("traces")]
    config.hook.pytest_deselected(items=needing)
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.write_line(f"{reason}; left out.")
