"""Snapshots are pickles from strangers: plain values are read, anything else is refused."""

import io
import os
import pickle
import struct
from collections import OrderedDict
from pathlib import Path

import pytest

from workbench.analysis.snapshots import read_snapshot
from workbench.analysis.snapshots.unpickle import load_plain
from workbench.errors import TraceError

PLAIN = {
    "numbers": [0, 255, 256, 65_536, -1, 2**31, 140_459_187_896_320, -(2**40), 0.5],
    "text": ["", "a", "ü" * 300, "\udc80"],
    "others": [None, True, False, (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), {}, {"a": []}],
}


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_plain_values_come_out_as_they_went_in(protocol: int) -> None:
    assert load_plain(pickle.dumps(PLAIN, protocol=protocol)) == PLAIN


def test_long_lists_are_handed_over_in_parts() -> None:
    value = [{"at": i, "next": str(i)} for i in range(5000)]
    assert load_plain(pickle.dumps(value, protocol=4)) == value


class Calls:
    """Asks the unpickler to run a command."""

    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("touch was-run",)


class Plain:
    """An object of a class of ours."""


class Persistent(pickle.Pickler):
    """Writes an object as a name that somebody else must look up."""

    def persistent_id(self, obj: object) -> object:
        return "elsewhere" if isinstance(obj, Plain) else None


def _persistent() -> bytes:
    file = io.BytesIO()
    Persistent(file, protocol=4).dump({"segments": Plain()})
    return file.getvalue()


HOSTILE = {
    "calls os.system": pickle.dumps({"segments": [Calls()]}, protocol=4),
    "calls by an older protocol": b"\x80\x02cos\nsystem\nX\x01\x00\x00\x00x\x85R.",
    "makes an object by name": b"\x80\x02(X\x01\x00\x00\x00xios\nsystem\n.",
    "makes an object": pickle.dumps(Plain(), protocol=2),
    "a registered name": b"\x80\x02\x82\x01.",
    "a persistent id": _persistent(),
    "a buffer from elsewhere": b"\x80\x05\x97.",
    "changes an object": b"\x80\x02}}b.",
    "a set": pickle.dumps({1, 2}, protocol=4),
    "bytes": pickle.dumps(b"abc", protocol=4),
    "a text protocol": b"\x80\x02I1\n.",
    "text longer than the file": b"\x80\x04X" + struct.pack("<I", 2**31) + b".",
    "text of absurd length": b"\x80\x04\x8d" + struct.pack("<Q", 2**62) + b".",
    "bytes of absurd length": b"\x80\x05\x96" + struct.pack("<Q", 2**40) + b".",
    "a memo with a gap": b"\x80\x02Nr" + struct.pack("<I", 2**31) + b".",
    "a value that was never kept": b"\x80\x02h\x07.",
    "a whole number of 255 bytes": b"\x80\x02\x8a\xff" + b"\x7f" * 255 + b".",
    "deep marks": b"\x80\x02" + b"(" * 10_000 + b".",
    "deep lists": b"\x80\x02" + b"]" * 100_000 + b"a" * 99_999 + b".",
    "more containers than its size": b"\x80\x02(" + (b"]0" * 100_000) + b"t.",
    "a number as a key": b"\x80\x02}K\x07Ns.",
    "a container as a key": b"\x80\x02})Ns.",
    "a deep tuple as a key": b"\x80\x02})" + b"\x85" * 1000 + b"Ns.",
    "fills what is no list": b"\x80\x02}Na.",
    "takes from nothing": b"\x80\x02\x86.",
    "closes what is not open": b"\x80\x02t.",
    "no text": b"\x80\x02X\x01\x00\x00\x00\xff.",
    "values left over": b"\x80\x02NN.",
    "nothing left": b"\x80\x02.",
    "cut short": pickle.dumps(PLAIN, protocol=4)[:-20],
    "nothing but a header": b"\x80\x04",
    "a later protocol": b"\x80\x09N.",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_everything_else_is_refused(
    data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TraceError, match=r"x\.pickle is a pickle that was not opened: .*was run"):
        load_plain(data, "x.pickle")
    assert not list(tmp_path.iterdir()), "nothing was run"


def test_the_message_names_the_instruction_and_the_place() -> None:
    """Byte 2 is the first one behind the two of the header."""
    with pytest.raises(TraceError, match=r"GLOBAL \(imports a name\) \(byte 2\)"):
        load_plain(b"\x80\x02cos\nsystem\n.", "x")


def test_keys_cannot_be_chosen_to_fall_into_one_place() -> None:
    """Multiples of 2^61 - 1 all have the hash 0: 40,000 of them took nine seconds."""
    keys = b"".join(
        b"\x8a\x0c" + (number * (2**61 - 1)).to_bytes(12, "little") + b"Ns" for number in range(9)
    )
    with pytest.raises(TraceError, match="absurd size"):
        load_plain(b"\x80\x04}" + keys + b".", "x")


@pytest.mark.parametrize("protocol", range(6))
def test_objects_of_every_protocol_are_refused(protocol: int) -> None:
    """Classes, calls, states, sets, bytes, complex numbers, sub-classes of dictionaries."""
    hostile = (Calls(), Plain(), OrderedDict(a=1), {1}, frozenset((1,)), b"x", bytearray(b"x"), 1j)
    for value in (*hostile, int, len):
        with pytest.raises(TraceError):
            load_plain(pickle.dumps({"segments": [value]}, protocol=protocol), "x")


def test_files_of_torch_save_are_refused() -> None:
    import torch

    for zipped in (True, False):
        file = io.BytesIO()
        torch.save({"segments": [torch.ones(2)]}, file, _use_new_zipfile_serialization=zipped)
        with pytest.raises(TraceError):
            read_snapshot(file.getvalue())
