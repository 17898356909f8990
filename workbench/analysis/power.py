"""Power, clock and temperature of devices while a Run was measured, and the energy of a step.

The sampler asks the driver a few times a second, longer than most steps: a step's energy is the
mean power times its length, not a measurement of one step. Samples from before the device worked
are left out where its utilization was told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

LEAST_SAMPLES = 3
"""Own choice: fewer tell no mean."""
POWER_COLUMNS = (
    *("device", "samples", "power_w", "power_most_w", "energy_j_per_step", "energy_j_per_sample"),
    *("clock_mhz", "clock_least_mhz", "clock_most_mhz", "temperature_most_c"),
)


def power_table(
    system: pd.DataFrame, step_ns: float | None, samples_per_step: float | None
) -> pd.DataFrame | None:
    """One row a device; ``None`` where no driver told of any. What it did not tell is missing.

    Args:
        system: Samples as ``system.arrow`` holds them.
        step_ns: Length of a step without the profiler.
        samples_per_step: Of the training, not of the sampler.
    """
    import pandas as pd

    rows = []
    devices = system[system["process"] == "device"]
    for device in sorted({int(number) for number in devices["device"].dropna()}):
        mine = devices[devices["device"] == device]
        power = _while_busy(mine, "gpu_power_w")
        clock = _while_busy(mine, "gpu_clock_mhz")
        heat = _while_busy(mine, "gpu_temperature_c")
        most = max(len(power), len(clock), len(heat))
        if most < LEAST_SAMPLES:
            continue
        watts = _of(np.mean, power)
        energy = None if watts is None or not step_ns else watts * step_ns / 1e9
        each = None if energy is None or not samples_per_step else energy / samples_per_step
        rows.append(
            (
                *(device, most, watts, _of(np.max, power), energy, each),
                *(_of(np.median, clock), _of(np.min, clock), _of(np.max, clock)),
                _of(np.max, heat),
            )
        )
    if not rows:
        return None
    table = pd.DataFrame(rows, columns=list(POWER_COLUMNS))
    return table.astype(dict.fromkeys(POWER_COLUMNS[2:], "Float64"))


def _while_busy(mine: pd.DataFrame, name: str) -> NDArray[np.float64]:
    """The known values of a column while the device worked, where anybody told whether it did."""
    busy = mine["gpu_utilization_percent"].to_numpy(float, na_value=np.nan)
    values = mine[name].to_numpy(float, na_value=np.nan)
    working = (busy > 0) if (busy > 0).any() else np.ones(len(mine), bool)
    return np.asarray(values[working & ~np.isnan(values)], np.float64)


def _of(what: object, values: NDArray[np.float64]) -> float | None:
    if len(values) < LEAST_SAMPLES or not callable(what):
        return None
    return float(what(values))
