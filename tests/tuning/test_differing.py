"""In what do two sides differ besides the switch?"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from tests.tuning.made import block, trial
from workbench.tuning.differing import differing
from workbench.tuning.samples import fingerprints, same_samples
from workbench.tuning.trial import FairRuns


def between(a: Sequence[Any], b: Sequence[Any], **more: Any) -> set[tuple[str, str]]:
    runs = FairRuns(trials=(trial(a), trial(b, **more)), ended="finished", elapsed_s=1.0)
    return {(each.where, each.name) for each in differing(runs)}


def test_equal_sides_differ_in_nothing():
    assert between([block([100] * 5)], [block([70] * 5)]) == set()


@pytest.mark.parametrize(
    ("first", "second", "told"),
    [
        ({"sample_hashes": (1, 2)}, {"sample_hashes": (2, 1)}, ("data", "first samples")),
        (
            {"conditions": {"others_cpu_share": 0.1}},
            {"conditions": {"others_cpu_share": 0.5}},
            ("machine", "others_cpu_share"),
        ),
        (
            {"conditions": {"clock_mhz": 3000.0}},
            {"conditions": {"clock_mhz": 2000.0}},
            ("machine", "clock_mhz"),
        ),
        (
            {"conditions": {"devices": [{"name": "GPU", "processes": 1}]}},
            {"conditions": {"devices": [{"name": "GPU", "processes": 3}]}},
            ("machine", "processes on devices"),
        ),
        ({"samples": 8}, {"samples": 16}, ("work", "samples per step")),
    ],
)
def test_what_was_not_the_same_is_named(first: dict, second: dict, told: tuple[str, str]):
    assert between([block([100] * 5, **first)], [block([100] * 5, **second)]) == {told}


def test_a_load_that_differs_a_little_as_it_always_does_is_not_named():
    a, b = ({"conditions": {"others_cpu_share": share}} for share in (0.50, 0.53))
    assert between([block([100] * 5, **a)], [block([100] * 5, **b)]) == set()


def test_notes_and_warnings_of_one_side_are_named():
    told = between([block([100] * 5)], [block([100] * 5)], notes=("bf16 is not native",))
    assert told == {("notes", "only here")}


def test_the_same_rows_in_other_batches_are_the_same_samples():
    rows, classes = torch.arange(64.0).reshape(16, 4), torch.arange(16)
    small = fingerprints((rows[:8], classes[:8])) + fingerprints((rows[8:], classes[8:]))
    large = fingerprints((rows, classes))
    assert same_samples(tuple(small), tuple(large))
    assert same_samples(tuple(small[:8]), tuple(large))
    assert not same_samples(tuple(reversed(small)), tuple(large))
    assert same_samples((), tuple(large)) is None


def test_a_class_that_is_another_makes_another_sample():
    rows = torch.ones(2, 4)
    assert fingerprints((rows, torch.tensor([0, 1]))) != fingerprints((rows, torch.tensor([0, 0])))


def test_batches_without_a_common_length_have_no_samples():
    assert fingerprints({"text": "words"}) == []
    assert fingerprints(torch.tensor(1.0)) == []


def test_a_side_that_never_ran_is_told_only_by_what_it_said():
    """A refused side had nothing in force: nothing of it went from a value to "not set"."""
    ran = trial([block([100] * 5)])
    ran = dataclasses.replace(ran, effective={"model": "MLP", "threads": 2})
    never = trial([], notes=("fp16 is not native",))
    runs = FairRuns(trials=(ran, never), ended="finished", elapsed_s=1.0)
    assert [(d.where, d.second) for d in differing(runs)] == [("notes", "fp16 is not native")]
