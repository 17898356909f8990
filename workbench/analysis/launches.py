"""Which runtime or driver call launched each piece of device work, and how far the clocks differ.

The join is by correlation id, which every era and vendor writes; where an event has none, the
arrow from the host to the device (category ``ac2g`` and its older names) stands in. The clocks of
host and device differ by a small constant in many traces (``clocks``). Up to 1 ms it is added to
the device's times to bring them to the host's clock; above, the two clocks cannot be compared.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.clocks import needed_offset
from workbench.analysis.devices import device_indices
from workbench.trace.table import DEVICE_WORK, Kind, Trace

LARGEST_OFFSET_NS = 1_000_000
FLOW_CATEGORIES = frozenset({"ac2g", "async_gpu", "async_cpu_to_gpu", "cpu_to_cuda"})

Rows = NDArray[np.int64]
FewRows = NDArray[np.int32]
"""Half the memory, for columns as long as the trace."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Launches:
    """The join of device work to the host, and the clock of each device."""

    launch: FewRows
    """Per event row: the row of its launching call, or -1; filled for device work only."""
    clock_offset: Mapping[int, int]
    """Per device: nanoseconds to add to its times to have them on the host's clock."""
    clock_ok: Mapping[int, bool]
    """Per device: false when the offset is too large to be a mere offset; it is not applied."""


def join_launches(trace: Trace) -> Launches:
    """Find the launching call of every kernel, copy and set, and each device's clock offset."""
    launch = np.full(len(trace.events), -1, np.int32)
    work = trace.events.rows(*DEVICE_WORK)
    launch[work] = _by_correlation(trace, work)
    lost = work[launch[work] < 0]
    if len(lost) and len(trace.flows.ts):
        launch[lost] = _by_flow(trace, lost)
    devices = device_indices(trace)
    alone = len(devices) == 1
    offsets = {each: needed_offset(trace, launch, each, alone=alone) for each in devices}
    ok = {device: abs(offset) <= LARGEST_OFFSET_NS for device, offset in offsets.items()}
    applied = {device: offset if ok[device] else 0 for device, offset in offsets.items()}
    return Launches(launch=launch, clock_offset=applied, clock_ok=ok)


def _by_correlation(trace: Trace, work: NDArray[np.intp]) -> Rows:
    """The call of the same correlation: of several, the latest that began before the work."""
    events = trace.events
    calls = events.rows(Kind.RUNTIME, Kind.DRIVER)
    calls = calls[events.correlation[calls] > 0]
    found = np.full(len(work), -1, np.int64)
    if not len(calls) or not len(work):
        return found
    key = np.concatenate((events.correlation[calls], events.correlation[work]))
    at = np.concatenate((events.ts[calls], events.ts[work] + LARGEST_OFFSET_NS))
    is_work = np.repeat([False, True], [len(calls), len(work)])
    order = np.lexsort((is_work, at, key))
    position = np.arange(len(order))
    latest_call = np.maximum.accumulate(np.where(is_work[order], -1, position))
    first_of_key = np.searchsorted(key[order], key[order], "left")
    before = latest_call >= first_of_key
    # A call that only follows is taken when none came before: the clocks differ by more.
    next_call = np.minimum.accumulate(np.where(is_work[order], len(order), position)[::-1])[::-1]
    after = next_call < np.searchsorted(key[order], key[order], "right")
    chosen = np.where(before, latest_call, np.where(after, next_call, -1))
    source = order[chosen]
    rows = np.where(chosen >= 0, calls[np.minimum(source, len(calls) - 1)], -1)
    found[order[is_work[order]] - len(calls)] = rows[is_work[order]]
    found[events.correlation[work] <= 0] = -1
    return found


def _by_flow(trace: Trace, work: NDArray[np.intp]) -> Rows:
    """The call at the tail of the arrow whose head meets the work's start on its lane."""
    flows, events = trace.flows, trace.events
    named = [i for i, name in enumerate(trace.categories) if name.lower() in FLOW_CATEGORIES]
    arrows = np.isin(flows.category, named)
    heads = np.flatnonzero(arrows & (flows.phase == ord("f")))
    tails = np.flatnonzero(arrows & (flows.phase == ord("s")))
    found = np.full(len(work), -1, np.int64)
    if not len(heads) or not len(tails):
        return found
    head_of = _match(events.lane[work], events.ts[work], flows.lane[heads], flows.ts[heads])
    tails = tails[np.argsort(flows.id[tails], kind="stable")]
    wanted = flows.id[heads[np.maximum(head_of, 0)]]
    place = np.minimum(np.searchsorted(flows.id[tails], wanted), len(tails) - 1)
    linked = (head_of >= 0) & (flows.id[tails[place]] == wanted)
    calls = events.rows(Kind.RUNTIME, Kind.DRIVER)
    tail = tails[place]
    call = _match(flows.lane[tail], flows.ts[tail], events.lane[calls], events.ts[calls])
    good = linked & (call >= 0)
    found[good] = calls[call[good]]
    return found


def _match(
    lane: NDArray[np.int32], ts: NDArray[np.int64], lanes: NDArray[np.int32], times: Rows
) -> Rows:
    """Index of the entry of ``lanes``, ``times`` that equals each (lane, ts); -1 when none."""
    if not len(times):
        return np.full(len(ts), -1, np.int64)
    instants, rank = np.unique(np.concatenate((times, ts)), return_inverse=True)
    key = np.concatenate((lanes, lane)).astype(np.int64) * len(instants) + rank
    table, wanted = key[: len(times)], key[len(times) :]
    order = np.argsort(table, kind="stable")
    place = np.minimum(np.searchsorted(table[order], wanted), len(order) - 1)
    return np.where(table[order[place]] == wanted, order[place], -1).astype(np.int64)
