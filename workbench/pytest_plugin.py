"""The pytest fixture ``workbench_gate``: a test that fails when a training loop became slower.

pytest loads this module at every start, so that it imports nothing but pytest: what measures is
imported when a test asks for it.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from workbench.gate import Gate
    from workbench.workload import Workload

BASELINES = "workbench_baselines"
FOLDER = ".workbench-baselines"
CACHES = ("*.arrow", "*.partial")
LONGEST = 150
"""Letters of the name of a baseline's folder."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and the setting of where baselines lie."""
    group = parser.getgroup("workbench", "performance gates")
    group.addoption(
        "--workbench-record",
        action="store_true",
        help="Measure anew what workbench_gate compares with, and keep it as the baseline.",
    )
    group.addoption(
        "--workbench-strict",
        action="store_true",
        help="Fail also where workbench_gate cannot tell, rather than skip.",
    )
    parser.addini(BASELINES, f"Folder of the baselines, below rootdir ({FOLDER}).", default=FOLDER)


class GateFixture:
    """Measures a workload and judges it against the baseline that is kept for the test."""

    def __init__(self, folder: Path, name: str, *, record: bool, strict: bool) -> None:
        self._folder = folder
        self._name = name
        self._record = record
        self._strict = strict

    def __call__(
        self,
        workload: Workload,
        *,
        budget: Any = None,
        steps: int = 20,
        name: str | None = None,
        counters_only: bool = False,
    ) -> Gate | None:
        """Measure a workload; fail when it became worse, skip when nobody can tell.

        Args:
            workload: What is measured.
            budget: Limits, as :func:`workbench.gate.gate` takes them.
            steps: Steps under the profiler.
            name: Of the baseline; needed where one test gates several workloads.
            counters_only: Judge only counts, which are the same on any machine.

        Returns:
            The verdict on every metric; ``None`` when the baseline was recorded.
        """
        from workbench.gate import gate
        from workbench.profiling import profile

        kept = self._folder / _file_name(name or self._name)
        if not (kept / "run.json").is_file() and not self._record:
            self._unknown(f"there is no baseline in {kept}; record it with --workbench-record")
        with tempfile.TemporaryDirectory(prefix="workbench-pytest-") as at:
            run = profile(workload, steps=steps, folder=at, progress=False)
            assert run.place is not None
            if self._record:
                _keep(run.place, kept)
                return None
            found = gate(kept, run, budget=budget, counters_only=counters_only)
        if found.failed:
            pytest.fail(f"{found!r}", pytrace=False)
        if not found.measured or found.verdict == "cannot_tell":
            self._unknown(found.sentence)
        return found

    def _unknown(self, why: str) -> None:
        if self._strict:
            pytest.fail(why, pytrace=False)
        pytest.skip(why)


@pytest.fixture
def workbench_gate(request: pytest.FixtureRequest) -> GateFixture:
    """Gate a workload against the baseline of this test."""
    config = request.config
    folder = config.rootpath / str(config.getini(BASELINES))
    return GateFixture(
        folder,
        request.node.nodeid,
        record=bool(config.getoption("--workbench-record")),
        strict=bool(config.getoption("--workbench-strict")),
    )


def _file_name(name: str) -> str:
    """The name of a test as a folder; two tests never share one."""
    plain = name.replace("::", "-").replace("/", "-")
    made = re.sub(r"[^\w.-]+", "-", plain).strip("-.")[-LONGEST:]
    if made == plain:
        return made
    return f"{made}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _keep(run: Path, kept: Path) -> None:
    """Put a Run in the place of an older baseline, without what is only a cache."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    waiting = kept.with_name(f".{kept.name}.partial")
    shutil.rmtree(waiting, ignore_errors=True)
    shutil.copytree(run, waiting, ignore=shutil.ignore_patterns(*CACHES))
    shutil.rmtree(kept, ignore_errors=True)
    waiting.rename(kept)
