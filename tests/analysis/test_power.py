"""Power, clock and temperature beside the step time, as the driver's samples tell them."""

import pandas as pd
import pytest

from workbench.analysis.power import power_table
from workbench.store.loader import SYSTEM_COLUMNS


def samples(*rows: dict[str, float | int | str]) -> pd.DataFrame:
    """As ``system.arrow`` is read: what was not measured is missing."""
    return pd.DataFrame(list(rows), columns=list(SYSTEM_COLUMNS))


def device(number: int = 0, **told: float) -> dict[str, float | int | str]:
    named = {f"gpu_{name}": value for name, value in told.items()}
    return {"process": "device", "device": number, "at_ns": 0, **named}


def test_a_step_takes_its_length_times_the_mean_power() -> None:
    """300 W for 0.1 s are 30 J; of 60 samples each half a joule. Idle samples do not count."""
    table = power_table(
        samples(
            {"process": "host", "at_ns": 0},
            device(power_w=60, utilization_percent=0, clock_mhz=210, temperature_c=40),
            device(power_w=250, utilization_percent=90, clock_mhz=1980, temperature_c=60),
            device(power_w=300, utilization_percent=95, clock_mhz=1900, temperature_c=70),
            device(power_w=350, utilization_percent=95, clock_mhz=1500, temperature_c=85),
        ),
        step_ns=1e8,
        samples_per_step=60,
    )
    assert table is not None
    (row,) = table.to_dict("records")
    assert (row["power_w"], row["power_most_w"]) == (300, 350)
    assert row["energy_j_per_step"] == pytest.approx(30)
    assert row["energy_j_per_sample"] == pytest.approx(0.5)
    assert (row["clock_mhz"], row["clock_least_mhz"], row["clock_most_mhz"]) == (1900, 1500, 1980)
    assert row["temperature_most_c"] == 85


def test_what_a_driver_does_not_tell_is_missing_and_never_zero() -> None:
    table = power_table(samples(*[device(1, clock_mhz=1000, utilization_percent=50)] * 4), 1e8, 60)
    assert table is not None
    assert table["device"].tolist() == [1]
    for name in ("power_w", "energy_j_per_step", "energy_j_per_sample", "temperature_most_c"):
        assert table[name].isna().all()


def test_without_step_time_there_is_power_and_no_energy() -> None:
    table = power_table(samples(*[device(power_w=100)] * 3), None, None)
    assert table is not None
    assert table["power_w"].tolist() == [100]
    assert table["energy_j_per_step"].isna().all()


@pytest.mark.parametrize("rows", [[], [device(power_w=100)] * 2, [{"process": "host"}] * 9])
def test_too_few_samples_or_no_device_are_not_measured(
    rows: list[dict[str, float | int | str]],
) -> None:
    assert power_table(samples(*rows), 1e8, 60) is None
