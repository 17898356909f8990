"""The patients of the final clinic."""

import pytest

from workbench.clinic import ward
from workbench.errors import WorkloadError


def test_six_patients_have_different_causes_and_do_not_name_them() -> None:
    patients = [ward.patient(number) for number in range(1, 7)]
    assert len({patient.answer for patient in patients}) == 6
    for number, patient in enumerate(patients, start=1):
        assert patient.name == f"patient {number}"
        assert patient.answer not in repr(patient)


def test_there_is_no_seventh() -> None:
    with pytest.raises(WorkloadError, match="there are 1 to 6"):
        ward.patient(7)
