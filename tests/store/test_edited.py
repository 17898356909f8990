"""A ``run.json`` that was edited: one error that says where, and the other Runs stay listed."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

import workbench as wb
from tests.store.records import record
from workbench.errors import RunError
from workbench.store.folder import list_runs, read_record
from workbench.store.record import Timings, decode, encode
from workbench.store.writing import new_run_folder

MEASURED = Timings(
    step_ns=[5, 6, 7], input_ns=[1, 1, 1], warmup=1, blocks=[2, 1], profiled_step_ns=[]
)


def edited(change: Callable[[dict[str, Any]], object]) -> bytes:
    whole = msgspec.structs.replace(record(), timings=MEASURED)
    fields = json.loads(encode(whole))
    change(fields)
    return json.dumps(fields).encode()


def timings(**changes: Any) -> Callable[[dict[str, Any]], object]:
    return lambda fields: fields["timings"].update(changes)


def field(**changes: Any) -> Callable[[dict[str, Any]], object]:
    return lambda fields: fields.update(changes)


EDITS = {
    "negative times": timings(step_ns=[-5, 6, 7]),
    "a number beyond any clock": timings(step_ns=[10**400, 6, 7]),
    "blocks of other steps": timings(blocks=[1000]),
    "more warm-up than steps": timings(warmup=4),
    "negative warm-up": timings(warmup=-1),
    "waits of other steps": timings(input_ns=[1]),
    "a negative overhead": field(overhead_ratio=-1.0),
    "fewer than no samples": field(samples_per_step=-4),
    "a text for a number": field(effective={"batch_size": "many"}),
    "a load in words": field(load={"load_average_before": "high"}),
    "more than all processors": field(load={"others_cpu_share": 2.0}),
    "a loader without a rate": field(loader_alone={"batches": 3}),
    "a loader of no time": field(
        loader_alone={"batches": 3, "seconds": 0, "batches_per_s": 1, "samples_per_s": None}
    ),
    "checks in words": field(input_checks={"shared_memory": "enough"}),
    "a trace beside the folder": field(traces=["../other/rank0.trace.json.gz"]),
    "a trace anywhere": field(traces=["/etc/passwd"]),
    "the folder as a trace": field(traces=["."]),
    "a trace without a name": field(traces=["a\0b"]),
}


@pytest.mark.parametrize("edit", EDITS)
def test_what_no_run_says_is_damage(edit: str) -> None:
    with pytest.raises(RunError, match=r"^here/run\.json is damaged \(.+\): record again\.$"):
        decode(edited(EDITS[edit]), where="here/run.json")


def test_nothing_is_refused_that_was_not_measured() -> None:
    """Parts that lack, or are null, are "not measured"; parts that are not known are left."""
    empty = field(effective={}, load=None, loader={}, loader_alone=None, input_checks={"new": [1]})
    assert decode(edited(empty), where="").effective == {}
    none = {"batch_size": None, "workers": None, "later": {"any": "thing"}}
    assert decode(edited(field(effective=none)), where="").effective == none


def test_a_text_that_nests_without_end_is_damage() -> None:
    deep = b'{"schema":"workbench.run/1","name":' + b"[" * 100_000
    with pytest.raises(RunError, match="is damaged"):
        decode(deep, where="")


def test_numbers_of_numpy_and_torch_are_numbers() -> None:
    """A loader takes ``batch_size=np.int64(8)``; as a text it would not be one any more."""
    effective = {"batch_size": np.int64(8), "lr": torch.tensor(0.5), "on": np.bool_(True), "t": int}
    written = encode(msgspec.structs.replace(record(), effective=effective))
    read = decode(written, where="").effective
    assert read == {"batch_size": 8, "lr": 0.5, "on": True, "t": "<class 'int'>"}
    assert type(read["on"]) is bool


def put(parent: Path, name: str) -> Path:
    with new_run_folder(parent, name) as new:
        (new.path / "rank0.trace.json").write_text("[]")
        new.record = msgspec.structs.replace(record(), traces=["rank0.trace.json"])
    assert new.folder is not None
    return new.folder


def test_one_bad_folder_hides_no_other(tmp_path: Path) -> None:
    whole, half, deep = (put(tmp_path, name) for name in ("whole", "half", "deep"))
    (half / "rank0.trace.json").unlink()
    (deep / "run.json").write_bytes(b'{"schema":"workbench.run/1","name":' + b"[" * 100_000)
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    (tmp_path / "file").write_text("{}")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd/run.json").mkdir()
    assert [entry.folder for entry in list_runs(tmp_path)] == [whole]
    assert wb.runs(tmp_path).names() == ["whole"]


def test_a_half_deleted_run_can_be_deleted(tmp_path: Path) -> None:
    half = put(tmp_path, "half")
    (half / "rank0.trace.json").unlink()
    wb.runs(tmp_path).delete("half")
    assert not half.exists()


@pytest.mark.parametrize("name", ["..", "", ".", "other/run", "../run", "/tmp", "gone", 3])
def test_only_a_run_of_this_folder_is_deleted(tmp_path: Path, name: Any) -> None:
    run = put(tmp_path, "run")
    (tmp_path / "other").mkdir()
    other = put(tmp_path / "other", "run")
    with pytest.raises(RunError):
        wb.runs(tmp_path / "other").delete(name)
    assert read_record(run)
    assert read_record(other)


def test_a_name_that_is_not_there_is_answered_in_one_line(tmp_path: Path) -> None:
    for number in range(30):
        put(tmp_path, f"run-{number:02}")
    with pytest.raises(RunError, match=r"there: 20 older ones, .*run-2\d") as refused:
        wb.runs(tmp_path)["mine"]
    assert len(str(refused.value)) < 400


def test_a_long_list_shows_the_newest_and_says_how_many_more(tmp_path: Path) -> None:
    """120 Runs, of which 100 are shown: 20 are only counted."""
    for number in range(120):
        put(tmp_path, f"run-{number:03}")
    listed = wb.runs(tmp_path)
    assert len(listed) == 120
    for text in (repr(listed), listed._repr_mimebundle_()["text/html"]):
        assert "20 older ones are there as well" in text
        assert text.count("run-") == 100
        assert "run-119" in text
