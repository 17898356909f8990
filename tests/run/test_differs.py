"""What differs comes first: versions before settings, and nothing where nothing differs."""

from pathlib import Path
from typing import Any

import pytest

import workbench as wb
from tests.kineto import Kineto
from tests.run.test_compare import measured
from workbench.run.differs import Difference, differences
from workbench.store.folder import read_record
from workbench.store.record import RunRecord, encode


def altered(folder: Path, **changes: Any) -> Path:
    """The same Run with some of its record replaced."""
    record = read_record(folder)
    fields = {name: getattr(record, name) for name in record.__struct_fields__}
    (folder / "run.json").write_bytes(encode(RunRecord(**(fields | changes))))
    return folder


def step(made: Kineto, name: str = "sgemm", **op: Any) -> Kineto:
    """One step with one matrix product and its kernel."""
    made.step(1, 0, 100)
    made.op("aten::mm", 10, 20, **op)
    made.launched(name, call=(12, 3), kernel=(20, 50), correlation=1)
    return made


def told(folder: Path, first: Kineto, second: Kineto) -> list[Difference]:
    paths = [trace.write(folder / f"{n}.json") for n, trace in enumerate((first, second))]
    one, other = (wb.open(path) for path in paths)
    return list(differences(one, other))


def test_library_versions_are_told_before_settings_and_any_number(tmp_path: Path) -> None:
    """Half precision without a fast kernel: the wheel's cuDNN is the cause, so it comes first."""
    old = {"torch": "1.8.1", "cudnn": "8005"}
    new = {"torch": "1.9.0", "cudnn": "8202"}
    first = wb.open(altered(measured(tmp_path, "a", step_ms=70, workers=0), environment=old))
    second = wb.open(altered(measured(tmp_path, "b", step_ms=20, workers=4), environment=new))
    found = wb.compare(first, second)
    assert [(d.name, d.first, d.second) for d in found.differences] == [
        ("torch", "1.8.1", "1.9.0"),
        ("cudnn", "8005", "8202"),
        ("workers", 0, 4),
    ]
    text = repr(found)
    assert text.index("cudnn") < text.index("workers") < text.index("is faster than")
    html = found._repr_mimebundle_()["text/html"]
    assert html.index("cudnn") < html.index("is faster than")


def test_headers_of_traces_tell_versions_and_devices(tmp_path: Path) -> None:
    first, second = step(Kineto(gpu=True)), step(Kineto(gpu=True))
    first.header |= {"cuda_runtime_version": 12040, "cuda_driver_version": 12090}
    second.header |= {"cuda_runtime_version": 11080, "cuda_driver_version": 12090}
    second.header["deviceProperties"] = [{"id": 0, "name": "NVIDIA H100", "computeMajor": 9}]
    found = told(tmp_path, first, second)
    assert [(d.where, d.name, d.first, d.second) for d in found[:2]] == [
        ("versions", "cuda_runtime_version", "12.4", "11.8"),
        ("device", "devices", "1 x NVIDIA A100-SXM4-40GB", "1 x NVIDIA H100"),
    ]


def test_hip_versions_are_readable(tmp_path: Path) -> None:
    first, second = step(Kineto(gpu=True)), step(Kineto(gpu=True))
    first.header["hip_runtime_version"] = 60443483
    assert told(tmp_path, first, second)[0].first == "6.4.43483"


def test_types_and_shapes_of_inputs(tmp_path: Path) -> None:
    first = step(
        Kineto(gpu=True), **{"Input type": ["float", "float"], "Input Dims": [[64, 8], [8, 4]]}
    )
    second = step(
        Kineto(gpu=True),
        **{
            "Input type": ["c10::BFloat16", "c10::BFloat16"],
            "Input Dims": [[128, 8], [8, 4]],
        },
    )
    found = {d.name: (d.first, d.second) for d in told(tmp_path, first, second)}
    assert found["types"] == ("float32", "bfloat16")
    assert found["shapes"] == ("aten::mm [[64,8],[8,4]]", "aten::mm [[128,8],[8,4]]")


def test_shapes_recorded_on_one_side_are_a_recording_option_and_no_other_shapes(
    tmp_path: Path,
) -> None:
    first = step(Kineto(gpu=True), **{"Input Dims": [[64, 8], [8, 4]]})
    first.header["record_shapes"] = 1
    found = [(d.where, d.name) for d in told(tmp_path, first, step(Kineto(gpu=True)))]
    assert found == [("recording", "record_shapes")]


def test_stacks_on_one_side(tmp_path: Path) -> None:
    first = step(Kineto(gpu=True))
    first.python("train.py(3): step", 5, 90, ident=1, parent=None)
    found = told(tmp_path, first, step(Kineto(gpu=True)))
    assert [(d.where, d.name, d.first, d.second) for d in found] == [
        ("recording", "python stacks", True, False)
    ]


def test_what_cannot_be_trusted_is_told_with_its_reason(tmp_path: Path) -> None:
    second = step(Kineto(gpu=True))
    for number in range(5):
        second.runtime("cudaLaunchKernel", 40 + 5 * number, 2, correlation=50 + number)
    found = told(tmp_path, step(Kineto(gpu=True)), second)
    assert [(d.where, d.name, d.first) for d in found] == [("trust", "missing_kernel", None)]
    assert "5 of 6 launches" in found[0].second


def test_world_size(tmp_path: Path) -> None:
    second = step(Kineto(gpu=True))
    second.header["distributedInfo"] = {"rank": 3, "world_size": 8, "backend": "nccl"}
    found = {d.name: (d.first, d.second) for d in told(tmp_path, step(Kineto(gpu=True)), second)}
    assert found == {"rank": (None, 3), "world_size": (None, 8), "backend": (None, "nccl")}


def test_nothing_personal_in_a_header_is_told(tmp_path: Path) -> None:
    first, second = step(Kineto(gpu=True)), step(Kineto(gpu=True))
    first.header |= {"host_name": "secret-host", "metadata": {"started_by": "somebody"}}
    assert told(tmp_path, first, second) == []


@pytest.mark.parametrize(
    ("first", "second", "listed"), [(0.1, 0.13, False), (0.1, 0.6, True), (None, None, False)]
)
def test_load_is_told_where_it_differs_enough_to_matter(
    tmp_path: Path, first: float | None, second: float | None, *, listed: bool
) -> None:
    folders = measured(tmp_path, "a", step_ms=10), measured(tmp_path, "b", step_ms=10)
    runs = [
        wb.open(altered(folder, load={"others_cpu_share": share}))
        for folder, share in zip(folders, (first, second), strict=True)
    ]
    assert ("load" in {d.where for d in differences(*runs)}) is listed


def test_a_run_against_a_trace_says_that_the_settings_are_not_known(tmp_path: Path) -> None:
    run = wb.open(measured(tmp_path, "a", step_ms=10))
    trace = wb.open(step(Kineto(gpu=True)).write(tmp_path / "t.json"))
    found = {d.name: (d.first, d.second) for d in differences(run, trace)}
    assert found["settings and batch size"] == ("recorded", "not recorded")


def test_a_run_does_not_differ_from_itself(tmp_path: Path) -> None:
    run = wb.open(measured(tmp_path, "a", step_ms=10))
    assert differences(run, run) == ()


def test_what_ranks_measured_is_no_setting(tmp_path: Path) -> None:
    """Losses, memory and DDP's own nanoseconds differ between any two Runs."""
    found = {"world_size": 2, "ddp_logging": {"avg_forward_compute_time": 812345}}
    first = wb.open(altered(measured(tmp_path, "a", step_ms=70), effective={"workers": 0}))
    second = wb.open(altered(measured(tmp_path, "b", step_ms=70), effective={"workers": 0} | found))
    assert [d.name for d in differences(first, second)] == ["world_size"]


def test_samples_per_second_stand_beside_the_step_times(tmp_path: Path) -> None:
    """A step of 70 ms with 32 samples, and one of 50 ms with 64 of both ranks: 457 and 1280."""
    first = wb.open(measured(tmp_path, "a", step_ms=70, noise=0.0))
    second = wb.open(measured(tmp_path, "b", step_ms=50, noise=0.0, samples=64))
    row = next(row for row in wb.compare(first, second).rows() if row[0] == "samples per second")
    assert row[1:] == ("457", "1\u2009280")
