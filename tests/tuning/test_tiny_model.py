"""A tiny model on several threads (H09): decisive on a busy machine, nothing on a quiet one."""

from collections.abc import Sequence

import pytest

from tests.tuning.loops import training
from tests.tuning.made import block, trial
from workbench.settings import Settings
from workbench.tuning import candidates
from workbench.tuning.conditions import ConditionsProbe, conditions_text
from workbench.tuning.trial import FairRuns
from workbench.tuning.verification import Verification

ONE = Settings(threads=1)


def one_thread_against_two(two: Sequence[float], one: Sequence[float], others: float) -> str:
    """The text of a verification with blocks of these medians, in ms, at such a load."""
    load = {"others_cpu_share": others, "load_average_after": 8 * others}
    plain, again = (trial([block([ms] * 5, conditions=load) for ms in two]) for _ in range(2))
    single = trial([block([ms] * 5, conditions=load) for ms in one], ONE)
    runs = FairRuns(trials=(plain, single, again), ended="finished", elapsed_s=1.0)
    answer = Verification(
        settings=ONE,
        base=Settings(),
        finding=None,
        fair=runs,
        parity=None,
        before=None,
        after=None,
    )
    return " ".join(repr(answer).split())


def test_where_others_load_the_processors_one_thread_is_faster_and_the_load_is_said() -> None:
    """100 → 100 linear, 4 rows, 2 processors: 12.8 to 13.6 ms on two threads, 0.5 on one."""
    said = one_thread_against_two((12.8, 13.6, 13.0, 13.2), (0.47, 0.52, 0.50, 0.49), 0.9)
    assert "threads=1 is faster" in said
    assert "other programs used 90 % of the processors, load average 7.2" in said


def test_on_a_quiet_machine_the_same_threads_cannot_be_told_apart() -> None:
    """44 and 47 us in a quiet moment, from block to block more than that."""
    said = one_thread_against_two((0.044, 0.049, 0.042, 0.047), (0.047, 0.043, 0.049, 0.045), 0.02)
    assert "cannot tell whether threads=1 helps: between" in said, "neither faster nor slower"
    assert "is faster" not in said
    assert "other programs used 2.0 % of the processors" in said


@pytest.mark.parametrize("threads", [1, 2])
def test_a_search_tries_one_thread_where_there_are_more(threads: int) -> None:
    effective = {"workers": 0, "batch_size": 8, "threads": threads, "device": "cpu"}
    found = candidates.from_offers(training(), effective, candidates.Shares(), None)
    assert (ONE in [each.change for each in found]) == (threads == 2)


def test_a_machine_that_tells_nothing_is_not_described() -> None:
    assert conditions_text([]) == ""
    assert conditions_text([{"others_cpu_share": None, "devices": None}]) == ""


def test_clock_heat_and_processes_on_devices_are_told() -> None:
    """Medians over the blocks: clocks of 2000, 3000 and 2600 MHz."""
    blocks = [
        {"clock_mhz": mhz, "temperature_c": 61.0, "devices": [{"processes": 3}]}
        for mhz in (2000.0, 3000.0, 2600.0)
    ]
    assert conditions_text(blocks) == (
        "The machine meanwhile: clock 2600 MHz, 61 °C, device 0: 3 processes."
    )


def test_this_machine_is_read_within_what_is_possible() -> None:
    share = ConditionsProbe().read()["others_cpu_share"]
    assert share is None or 0 <= share <= 1
