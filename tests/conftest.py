"""What every test may ask for, and what is left out where real traces or a device are missing."""

import functools
import gc
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

_VARIABLE = "WORKBENCH_TRACES"
_TESTS = Path(__file__).parent
_TOGETHER = (
    "analysis",
    "docs",
    "figures",
    "findings",
    "js",
    "pages",
    "reporting",
    "run",
    "settings",
    "simulator",
    "store",
    "trace",
    "units",
)
"""Rooms whose answers stay the same beside other tests: they read, compute and write."""
_RECORDS = re.compile(r"wb\.(profile|capture|verify|tune)\(|\bDataLoader\(")
"""What a module of them calls that runs loops itself, and looks at the clock."""


@pytest.fixture(scope="session")
def traces_root() -> Path:
    """The folder of real traces recorded by others; only for tests marked ``traces``."""
    return Path(os.environ[_VARIABLE])


@pytest.fixture(scope="module", autouse=True)
def _small_heap() -> None:
    """What is loaded by now is never garbage: collections in a test look only at what it makes.

    Thousands of tests in one process fill its memory with modules, and a collection, which
    measuring calls for, would take longer than what is measured.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _interrupts_reach_us() -> None:
    """What a shell starts in the background ignores interrupts, and tests send themselves some."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """One thread for torch, then as many as before: of tiny work a second only waits for the first.

    On a machine that others load, two that wait for each other measure that load.
    """
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests that need what is not here, and say so; in CI missing traces are an error."""
    for item in items:
        if _may_run_beside_others(item.path):
            item.add_marker("together")
    if not os.environ.get(_VARIABLE):
        reason = f"tests need real traces: set {_VARIABLE} to their folder"
        left = _leave_out(config, items, "traces", reason)
        if left and os.environ.get("CI") == "true":
            raise pytest.UsageError(f"{left} {reason} (in CI they must run).")
    if any(item.get_closest_marker("gpu") for item in items) and not _accelerator():
        _leave_out(config, items, "gpu", "tests need an accelerator, and torch has none here")


@functools.cache
def _may_run_beside_others(path: Path) -> bool:
    room = path.relative_to(_TESTS).parts[0]
    return room in _TOGETHER and not _RECORDS.search(path.read_text(encoding="utf-8"))


def _accelerator() -> bool:
    import torch

    return torch.accelerator.is_available()


def _leave_out(config: pytest.Config, items: list[pytest.Item], mark: str, reason: str) -> int:
    """Deselect what carries the mark; returns how many that were."""
    needing = [item for item in items if item.get_closest_marker(mark)]
    if not needing:
        return 0
    items[:] = [item for item in items if not item.get_closest_marker(mark)]
    config.hook.pytest_deselected(items=needing)
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        reporter.write_line(f"{len(needing)} {reason}; left out.")
    return len(needing)
