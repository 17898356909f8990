"""What the numbers in an Nsight Systems export stand for: strings, threads, processes, devices."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from workbench.trace.columns import integers
from workbench.trace.formats.records import Records
from workbench.trace.formats.sqlite import Tables
from workbench.trace.table import Device

_PROCESS_SHIFT = 24
_ID_MASK = 0xFFFFFF
_CORRELATION_SHIFT = 40
_MOST_PROCESSES = 2**20
_LONGEST_NAME = 4096
_LARGEST_DEVICE = 2**15


class Identities:
    """The tables that give numbers their meaning, read once."""

    def __init__(self, tables: Tables) -> None:
        self._strings: dict[int, str] = {}
        self._threads: dict[int, str] = {}
        self._processes: dict[int, str] = {}
        self._order: dict[int, int] = {}
        self._numbers: dict[tuple[int, int], int] = {}
        self._places: dict[int, dict[int, int]] = {}
        for ids, values in tables.select("StringIds", ["id", "value"]):
            self._strings.update(
                (i, str(value)[:_LONGEST_NAME]) for i, value in zip(ids, values, strict=True)
            )
        for threads, names in tables.select("ThreadNames", ["globalTid", "nameId"]):
            for thread, name in zip(threads, names, strict=True):
                self._threads.setdefault(thread, self.text(name))
        for processes, names in tables.select("PROCESSES", ["globalPid", "name"]):
            for process, name in zip(integers(processes).tolist(), names, strict=True):
                self._processes[process >> _PROCESS_SHIFT] = str(name or "")[:_LONGEST_NAME]
        columns = ["pid", "cudaId", "gpuId"]
        for pids, of_process, of_machine in tables.select("TARGET_INFO_CUDA_DEVICE", columns):
            for pid, number, machine in zip(pids, of_process, of_machine, strict=True):
                if isinstance(machine, int) and 0 <= machine < _LARGEST_DEVICE:
                    self._numbers[pid, number] = machine
        self.devices = _devices(tables)

    def text(self, number: Any) -> str:
        """A string by its number."""
        return self._strings.get(number, "")

    def names(self, records: Records, numbers: list[Any]) -> NDArray[np.int64]:
        """Codes of the names that stand behind numbers of strings."""
        codes = {number: records.names[self.text(number)] for number in set(numbers)}
        return np.array([codes[number] for number in numbers], np.int64)

    def lanes(
        self, records: Records, threads: NDArray[np.int64], suffix: str = ""
    ) -> NDArray[np.int64]:
        """Codes of the lanes of host threads."""
        used, index = np.unique(threads, return_inverse=True)
        codes = []
        for thread in used.tolist():
            process = thread >> _PROCESS_SHIFT
            pid, tid = str(process & _ID_MASK), str(thread & _ID_MASK)
            name = self._threads.get(thread, "")
            codes.append(
                records.lane(pid, tid + suffix, self._processes.get(process, ""), name + suffix)
            )
        return np.array(codes, np.int64)[index]

    def correlations(
        self, numbers: NDArray[np.int64], owner: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Correlations that are unique in the file: they count anew in every process.

        ``owner`` is a thread or process; -1, where an export does not tell it, is the first one.
        """
        place = self.process_numbers(owner)
        known = (numbers > 0) & (numbers < 2**_CORRELATION_SHIFT) & (place < _MOST_PROCESSES)
        return np.where(known, numbers + (place << _CORRELATION_SHIFT), -1)

    def process_numbers(self, owner: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number each process in the order of appearance."""
        used, index = np.unique(owner, return_inverse=True)
        places = [
            0 if o < 0 else self._order.setdefault(o >> _PROCESS_SHIFT, len(self._order))
            for o in used.tolist()
        ]
        return np.array(places, np.int64)[index]

    def device_numbers(
        self, numbers: NDArray[np.int64], process: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The machine's number of each device, which a process may count differently."""
        pid = (process >> _PROCESS_SHIFT) & _ID_MASK
        pairs, index = np.unique(np.stack((pid, numbers), 1), axis=0, return_inverse=True)
        found = [
            self._numbers.get((p, d), d if 0 <= d < _LARGEST_DEVICE else -1)
            for p, d in pairs.tolist()
        ]
        return np.array(found, np.int64)[index.reshape(-1)]

    def places_on_device(
        self, device: NDArray[np.int64], process: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """For each row, as which process of its device its process came."""
        owner = process >> _PROCESS_SHIFT
        pairs, index = np.unique(np.stack((device, owner), 1), axis=0, return_inverse=True)
        found = []
        for number, who in pairs.tolist():
            places = self._places.setdefault(number, {})
            found.append(places.setdefault(who, len(places)))
        return np.array(found, np.int64)[index.reshape(-1)]


def _devices(tables: Tables) -> dict[int, Device]:
    found: dict[int, Device] = {}
    wanted = ["id", "name", "totalMemory", "computeMajor", "computeMinor"]
    for rows in tables.select("TARGET_INFO_GPU", wanted):
        for index, name, memory, major, minor in zip(*rows, strict=True):
            if isinstance(index, int) and 0 <= index < _LARGEST_DEVICE:
                found[index] = Device(
                    index=index,
                    type="cuda",
                    name=str(name or "")[:_LONGEST_NAME],
                    arch=f"{major}.{minor or 0}" if isinstance(major, int) else "",
                    memory_bytes=memory if isinstance(memory, int) and memory > 0 else None,
                )
    return found
