"""The entries of ``args`` as columns: each group of categories fills those that it may carry."""

import types
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from msgspec import Raw
from numpy.typing import NDArray

from workbench.trace.categories import Group
from workbench.trace.columns import Codes, Column, RawCodes, integers, packed
from workbench.trace.lenient import to_arguments, to_int, to_text
from workbench.trace.repair import clean
from workbench.trace.schema import (
    NOTHING,
    UNTYPED,
    AnyArguments,
    CallArguments,
    CollectiveArguments,
    DeviceArguments,
    HostArguments,
    PythonArguments,
)

_STRUCTS: dict[Group, Any] = {
    Group.PYTHON: PythonArguments,
    Group.HOST: HostArguments,
    Group.CALL: CallArguments,
    Group.DEVICE: DeviceArguments,
    Group.ANY: AnyArguments,
}
_ONE = {group: msgspec.json.Decoder(kind, strict=False) for group, kind in _STRUCTS.items()}
_MANY = {
    group: msgspec.json.Decoder(types.GenericAlias(list, (kind,)), strict=False)
    for group, kind in _STRUCTS.items()
}
_COLLECTIVE = msgspec.json.Decoder(CollectiveArguments, strict=False)
_COLLECTIVE_TEXTS = (
    *("name", "group", "description", "ranks", "dtype"),
    *("in_split", "out_split", "communicator"),
)
_COLLECTIVE_NUMBERS = (
    *("group_size", "in_elements", "out_elements", "sequence"),
    *("rank", "source", "destination", "rank_start", "rank_stride"),
)
_ABSURD = 1 << 44
"""No message has so many elements: with their sizes, sums would leave 64 bits."""
_TRUTHS = {"true": True, "1": True, "false": False, "0": False}


class ArgumentColumns:
    """Growing columns of everything that stands in ``args`` of duration events."""

    def __init__(self) -> None:
        wide = "correlation external_id sequence forward_thread python_id python_parent bytes"
        self.numbers = {name: Column(np.int64) for name in wide.split()}
        self.numbers |= {"stream": Column(np.int32), "python_module": Column(np.int32)}
        self.numbers["device"] = Column(np.int16)
        self.texts = {name: Column(np.int32) for name in ("shapes", "types", "strides", "values")}
        self.codes = {name: RawCodes() for name in (*self.texts, "extent")}
        self.stack = Column(np.int32)
        self.stacks = Codes()
        self.launch_row = Column(np.int64)
        self.launch = {name: Column(np.int32) for name in ("grid", "block")}
        self.launch |= {name: Column(np.int32) for name in ("registers", "shared_memory")}
        floats = ("occupancy", "blocks_per_sm", "warps_per_sm")
        self.launch |= {name: Column(np.float32) for name in floats}
        self.launch |= {name: Column(np.int64) for name in ("queued", "graph", "graph_node")}
        self.copies = {"row": Column(np.int64), "bandwidth": Column(np.float64)}
        self.waits = {name: Column(np.int64) for name in ("row", "event", "recorded_by")}
        self.waits["stream"] = Column(np.int32)
        self.collectives: list[dict[str, Any]] = []
        self.mended = 0
        """Arguments that were no legal JSON and were mended or left out."""

    def add(self, raws: Sequence[Raw], rows: NDArray[np.int64], group: Group) -> None:
        """Take the arguments of the given rows, which belong to one group of categories."""
        found = self._decode(raws, group)
        if group is Group.PYTHON:
            self._add_python(found, rows)
            return
        self._put("external_id", rows, [a.external_id for a in found])
        if group is not Group.HOST:
            self._put("correlation", rows, [a.correlation for a in found])
            self._put("bytes", rows, [a.bytes for a in found])
        if group in (Group.DEVICE, Group.ANY):
            self._put("device", rows, [a.device for a in found])
            self._put("stream", rows, [a.stream for a in found])
            self._add_launches(found, rows)
            self._add_copies(found, rows)
            self._add_waits(found, rows)
        if group in (Group.HOST, Group.ANY):
            self._add_operators(found, rows)
        if group is Group.ANY:
            self._add_python(found, rows)
            self._add_other_spellings(found, rows)
        if group is not Group.CALL:
            self._add_collectives(found, raws, rows)

    def _decode(self, raws: Sequence[Raw], group: Group) -> list[Any]:
        try:
            found: list[Any] = _MANY[group].decode(b"[" + b",".join(raws) + b"]")
        except (msgspec.DecodeError, RecursionError):
            found = [self._decode_one(raw, group) for raw in raws]
        return found

    def _decode_one(self, raw: Raw, group: Group) -> Any:
        text = bytes(raw)
        try:
            return _ONE[group].decode(text)
        except msgspec.ValidationError:
            pass
        except (msgspec.DecodeError, RecursionError):
            self.mended += 1
            text = clean(text.decode("utf-8", "replace")).encode("utf-8", "replace")
        try:
            return to_arguments(_STRUCTS[group], UNTYPED.decode(text))
        except (msgspec.DecodeError, RecursionError):
            return _STRUCTS[group]()

    def _add_python(self, found: list[Any], rows: NDArray[np.int64]) -> None:
        parents = [a.python_parent for a in found]
        self._put("python_id", rows, [a.python_id for a in found])
        self._put("python_parent", rows, [-1 if p is None else p for p in parents])
        self._put("python_module", rows, [a.python_module for a in found])

    def _add_other_spellings(self, found: list[Any], rows: NDArray[np.int64]) -> None:
        others = {
            "external_id": [a.external_id_old for a in found],
            "correlation": [
                a.correlation_xla if a.connection == -1 else a.connection for a in found
            ],
            "bytes": [a.size for a in found],
            "stream": [a.stream_npu for a in found],
        }
        for name, values in others.items():
            missing = np.flatnonzero(self.numbers[name].tail(rows) == -1)
            self._put(name, rows[missing], [values[i] for i in missing.tolist()])
        old = [i for i, a in enumerate(found) if a.shapes is NOTHING]
        self._put_text("shapes", rows[old], [found[i].shapes_old for i in old])

    def _add_operators(self, found: list[Any], rows: NDArray[np.int64]) -> None:
        self._put_text("shapes", rows, [a.shapes for a in found])
        self._put_text("types", rows, [a.types for a in found])
        self._put_text("strides", rows, [a.strides for a in found])
        self._put_text("values", rows, [a.values for a in found])
        sequences = integers([a.sequence for a in found])
        some = np.flatnonzero(sequences != -1)
        if len(some):
            threads = integers([a.forward_thread for a in found])
            self.numbers["sequence"].put(rows[some], sequences[some])
            self.numbers["forward_thread"].put(rows[some], threads[some])
        stacks = [a.stack for a in found]
        if stacks.count(None) < len(stacks):
            texts = [to_text(stack) for stack in stacks]
            codes = [self.stacks[text] if text else -1 for text in texts]
            self.stack.put(rows, np.array(codes, np.int64))

    def _add_launches(self, found: list[Any], rows: NDArray[np.int64]) -> None:
        grids = self.codes["extent"].of([a.grid for a in found])
        if grids is None:
            return
        launched = np.flatnonzero(grids >= 0)
        if len(launched) < len(rows):
            found = [found[i] for i in launched.tolist()]
        columns = self.launch
        places = len(self.launch_row) + np.arange(len(launched))
        self.launch_row.extend(rows[launched])
        columns["grid"].extend(grids[launched])
        blocks = self.codes["extent"].of([a.block for a in found])
        columns["block"].extend(np.full(len(launched), -1) if blocks is None else blocks)
        columns["registers"].extend(integers([a.registers for a in found], np.int32))
        columns["shared_memory"].extend(integers([a.shared_memory for a in found], np.int32))
        columns["occupancy"].extend(_small([a.occupancy for a in found]))
        columns["blocks_per_sm"].extend(_small([a.blocks_per_sm for a in found]))
        columns["warps_per_sm"].extend(_small([a.warps_per_sm for a in found]))
        queued = integers([a.queued for a in found])
        _put_told(columns["queued"], places, np.where(queued > 0, queued, -1))
        _put_told(columns["graph"], places, integers([a.graph for a in found]))
        _put_told(columns["graph_node"], places, integers([a.graph_node for a in found]))

    def _add_copies(self, found: list[Any], rows: NDArray[np.int64]) -> None:
        bandwidth = np.array([a.bandwidth for a in found], np.float64)
        told = np.flatnonzero(np.isfinite(bandwidth))
        if len(told):
            self.copies["row"].extend(rows[told])
            self.copies["bandwidth"].extend(bandwidth[told])

    def _add_waits(self, found: list[Any], rows: NDArray[np.int64]) -> None:
        told = [i for i, a in enumerate(found) if a.wait_event != -1]
        if told:
            waits = [found[i] for i in told]
            self.waits["row"].extend(rows[told])
            self.waits["event"].extend(integers([a.wait_event for a in waits]))
            self.waits["recorded_by"].extend(integers([a.wait_recorded_by for a in waits]))
            self.waits["stream"].extend(integers([a.wait_stream for a in waits], np.int32))

    def _add_collectives(
        self, found: list[Any], raws: Sequence[Raw], rows: NDArray[np.int64]
    ) -> None:
        for index in [i for i, a in enumerate(found) if a.collective is not None]:
            try:
                told = _COLLECTIVE.decode(raws[index])
            except (msgspec.DecodeError, RecursionError):
                told = CollectiveArguments(name=found[index].collective)
            entry: dict[str, Any] = {"row": int(rows[index])}
            entry |= {field: to_text(getattr(told, field)) for field in _COLLECTIVE_TEXTS}
            for field in _COLLECTIVE_NUMBERS:
                number = to_int(getattr(told, field))
                least = 1 if field == "group_size" else 0
                entry[field] = number if least <= number < _ABSURD else None
            entry["group"] = entry["group"] or to_text(told.group_id)
            entry["asynchronous"] = _TRUTHS.get(to_text(told.asynchronous).lower())
            self.collectives.append(entry)

    def _put(self, name: str, rows: NDArray[np.int64], values: list[Any]) -> None:
        column = self.numbers[name]
        _put_told(column, rows, integers(values, column.dtype))

    def _put_text(self, name: str, rows: NDArray[np.int64], raws: list[Raw]) -> None:
        codes = self.codes[name].of(raws)
        if codes is not None:
            self.texts[name].put(rows, codes)


def _small(values: list[float]) -> NDArray[np.float32]:
    """Numbers in half the memory; what is too large for that is *not recorded*."""
    with np.errstate(over="ignore"):
        found = packed(values, "d").astype(np.float32)
    found[np.isinf(found)] = np.nan
    return found


def _put_told(column: Column, rows: NDArray[np.int64], values: NDArray[np.int64]) -> None:
    """Values that are all *not recorded* need no memory."""
    if (values != -1).any():
        column.put(rows, values)
