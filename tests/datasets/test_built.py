"""The traces that come with the package show what their card says, and nothing else."""

import gzip
import json

import pytest

import workbench as wb
from tests.lessons.sources import script
from workbench import datasets
from workbench.errors import DatasetError

NAMED = {
    "input_bound": {"WB101"},
    "sync_in_loop": {"WB203"},
    "single_tensor_optimizer": {"WB205", "WB202"},
    "small_kernels": {"WB201", "WB301"},
    "healthy": set(),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_trace_shows_its_fault_and_no_other(name: str) -> None:
    """Gaps of a microsecond between kernels of 2.5, and half precision for them, are its own."""
    run = wb.open(datasets.traces(name))
    assert {f.code for f in run.findings if f.verdict == "yes"} == NAMED[name]
    assert run.trust.ok


def test_traces_are_those_of_the_script_and_say_that_they_are_built() -> None:
    made = script("make_traces")
    assert {step.__name__ for step in made.TRACES} == set(NAMED)
    for step in made.TRACES:
        kept = gzip.decompress(datasets.traces(step.__name__).read_bytes())
        assert kept == gzip.decompress(made.built(step)), "run: python docs/make_traces.py"
        assert "not recorded" in json.loads(kept)["built"]


def test_an_unknown_trace_is_refused_with_the_known_ones() -> None:
    with pytest.raises(DatasetError, match="no trace 'gpu'; there are: healthy, "):
        datasets.traces("gpu")
