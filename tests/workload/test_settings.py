"""Does the record of settings check itself, and does it survive JSON?"""

import json
from typing import Any

import pytest

from workbench.errors import SettingError
from workbench.settings import Record, Settings, check_records


def test_only_what_is_set_counts_as_a_change() -> None:
    assert Settings().changes() == {}
    assert Settings(workers=0, pin_memory=False).changes() == {"workers": 0, "pin_memory": False}
    assert str(Settings()) == "as it is"
    assert str(Settings(precision="bf16", workers=4)) == "precision=bf16, workers=4"


def test_it_comes_back_from_json_as_it_was() -> None:
    settings = Settings(precision="bf16", batch_size=8, workers=2, compile=False)
    assert Settings.from_json(json.loads(json.dumps(settings.to_json()))) == settings


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"precision": "fp8"}, "use one of fp32, tf32, bf16, fp16"),
        ({"batch_size": 0}, "batch_size=0 must be at least 1"),
        ({"workers": -1}, "workers=-1 must be at least 0"),
        ({"workers": 1.5}, "must be a whole number"),
        ({"workers": True}, "must be a whole number"),
        ({"accumulation": "4"}, "must be a whole number"),
        ({"compile": 1}, "must be True, False or None"),
        ({"workers": 0, "prefetch_factor": 2}, "prefetch_factor needs worker processes"),
        ({"workers": 0, "persistent_workers": True}, "persistent_workers needs worker processes"),
        ({"wrokers": 2}, "unknown setting 'wrokers'; known are accumulation, batch_size"),
    ],
)
def test_a_value_that_means_nothing_is_refused(values: dict[str, Any], match: str) -> None:
    with pytest.raises(SettingError, match=match):
        Settings.from_json(values)


@pytest.mark.parametrize("value", ["yes", 1, None])
def test_what_to_record_is_yes_or_no(value: Any) -> None:
    with pytest.raises(SettingError, match=r"stacks=.* must be True or False"):
        Record(stacks=value)


@pytest.mark.parametrize("wrong", [{}, {"workers": 2}, "bf16", 2])
def test_what_only_looks_like_a_record_is_refused(wrong: Any) -> None:
    with pytest.raises(SettingError, match=r"give a record such as wb\.Settings\("):
        check_records(wrong, Record())
    with pytest.raises(SettingError, match=r"give a record such as wb\.Record\("):
        check_records(None, wrong)
