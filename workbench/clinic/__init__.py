"""Planted faults: training loops whose bottleneck is known, for lessons, tests and benchmarks.

::

    from workbench import clinic

    patient = clinic.case("slow_decode")
    run = wb.profile(patient.workload(), patient.given(), record=patient.record)
    patient.question, patient.answer      # ask first, look later

``CASES`` lists them all. Each is seeded, runs on two processor cores within a minute, and needs no
file and no network. ``grade`` checks the answers of the lessons.
"""

from workbench.clinic import grade, ward
from workbench.clinic.case import Case
from workbench.clinic.cases import CASES, case

__all__ = ["CASES", "Case", "case", "grade", "ward"]
