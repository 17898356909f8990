"""The traces of the benchmark are what it says, and its readers tell what they took."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.trace_engine import KINDS, READ_ONE, generate
from workbench import trace
from workbench.trace.table import Kind


@pytest.mark.parametrize("kind", KINDS)
def test_a_generated_trace_is_json_and_holds_what_it_should(tmp_path: Path, kind: str) -> None:
    count = generate(tmp_path / "t.json", 0.5, **KINDS[kind])
    written = json.loads((tmp_path / "t.json").read_bytes())["traceEvents"]
    found = trace.read(tmp_path / "t.json")

    assert len(written) == count
    assert not found.violations
    kernels = len(found.events.rows(Kind.KERNEL))
    # two ends of one flow for each launch; with arrows, of two flows
    assert len(found.flows.ts) == (4 if kind == "arrows" else 2) * kernels > 0
    # three frames around each operator, and one launch in each
    frames = len(found.events.rows(Kind.PYTHON))
    assert frames == (3 * kernels if kind == "stacks" else 0)
    assert (found.shapes == ()) == (kind == "arrows")


def test_a_reader_tells_its_time_and_memory_and_a_missing_one_says_so(tmp_path: Path) -> None:
    generate(tmp_path / "t.json", 0.2)
    told = [
        json.loads(
            subprocess.run(
                [sys.executable, "-S", str(READ_ONE), reader, str(tmp_path / "t.json")],
                check=True,
                capture_output=True,
            ).stdout
        )
        for reader in ("json_loads", "hta")  # without site-packages nobody's HTA is there
    ]

    assert told[0]["peak"] > 1
    assert told[0]["wall"] > 0
    assert told[1] == {"missing": "hta"}
