"""The list of planted faults: complete, repeatable, and silent about the answer."""

import re
from dataclasses import FrozenInstanceError

import pytest
import torch

from tests.clinic.batches import first_batch
from tests.house.files import ROOT
from workbench import clinic
from workbench.errors import WorkloadError
from workbench.findings import RULES

NAMES = [case.name for case in clinic.CASES]


def test_every_case_has_its_line_in_the_reference() -> None:
    text = (ROOT / "docs/reference.md").read_text(encoding="utf-8")
    section = text.partition("## Planted faults")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)`", section, re.MULTILINE) == NAMES


def test_a_case_gives_its_question_away_and_not_its_answer() -> None:
    for case in clinic.CASES:
        assert case.question in repr(case)
        for secret in (case.answer, case.finding, repr(case.cure)):
            assert secret not in repr(case)


def test_every_case_names_a_finding_that_exists() -> None:
    import sys

    codes = {sys.modules[rule.__module__].CODE for rule in RULES}
    assert {case.finding for case in clinic.CASES} <= codes


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_batches_and_weights(name: str) -> None:
    def first(seed: int) -> list[torch.Tensor]:
        work = clinic.case(name, seed=seed, scale=0.1).workload()
        sample = first_batch(work.data)
        parts = sample[0] if isinstance(sample[0], list) else [sample[0]]
        return [*parts, sample[1], *work.model.parameters()]

    state = torch.get_rng_state()
    one, again, other = first(3), first(3), first(4)
    assert all(torch.equal(a, b) for a, b in zip(one, again, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    assert torch.equal(torch.get_rng_state(), state)


def test_an_unknown_name_or_a_senseless_size_is_refused() -> None:
    with pytest.raises(WorkloadError, match=r"no planted fault 'slow'; there are: slow_decode, "):
        clinic.case("slow")
    for scale in (-1, 101, True, "1"):
        with pytest.raises(WorkloadError, match=r"scale=.* must be a number from 0 to 100"):
            clinic.case("slow_decode", scale=scale)  # type: ignore[arg-type]
    with pytest.raises(WorkloadError, match=r"seed=-1 must be a whole number"):
        clinic.case("slow_decode", seed=-1)
    with pytest.raises(FrozenInstanceError):
        clinic.CASES[0].name = "other"  # type: ignore[misc]
