"""A rank's collectives in its windows; wait and transfer as all ranks together tell them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from workbench.analysis.communication import ExposedCommunication
    from workbench.run.rank import RankAnalysis


def communication(rank: RankAnalysis) -> pd.DataFrame | None:
    """Collectives by kind and group; ``None`` when the trace cannot tell of any."""
    from workbench.analysis.communication import communication_table

    windows = rank.collective_windows
    if rank.collectives is None or not any(windows.values()):
        return None
    return communication_table(rank.collectives, windows, rank.transfer)


def calls(rank: RankAnalysis) -> pd.DataFrame | None:
    """One row a call; ``None`` when the trace cannot tell of any."""
    from workbench.analysis.communication import calls_table

    if rank.collectives is None:
        return None
    return calls_table(rank.collectives, rank.collective_windows, rank.transfer)


def exposed(rank: RankAnalysis, device: int) -> ExposedCommunication:
    """What no computation of a device hides, in its two parts; undivided where nobody can."""
    from workbench.analysis.communication import ExposedCommunication, exposed_communication

    window = rank.collective_windows[device]
    if rank.collectives is None or window is None:
        whole = rank.device_time[device].exposed_communication
        return ExposedCommunication(wait=None, transfer=whole)
    return exposed_communication(rank.collectives, device, window, rank.transfer)
