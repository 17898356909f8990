"""Lane files: any accelerator beside the host, and errors that name their line."""

import gzip

import pytest

from tests.trace.formats.tables import column, rows
from workbench import trace
from workbench.analysis.launches import join_launches
from workbench.errors import TraceError
from workbench.trace.table import DEVICE_WORK, Kind

FPGA = """\
# an inference on a board
lane,kind,name,start_us,duration_us,correlation,bytes
main,annotation,ProfilerStep#0,0,100,,
main,runtime,enqueue,10,2,1,
alveo0/compute,kernel,dense_1,20.5,40,1,
alveo0/dma,memcpy,input,15,5,,4096
alveo1/compute,kernel,dense_1,21,40,,
"""


def test_devices_streams_and_host_in_one_file() -> None:
    found = trace.read(FPGA.encode())
    assert rows(found) == [
        ("ProfilerStep#0", "annotation", 0, 100_000),
        ("enqueue", "runtime", 10_000, 2_000),
        ("input", "memcpy", 15_000, 5_000),
        ("dense_1", "kernel", 20_500, 40_000),
        ("dense_1", "kernel", 21_000, 40_000),
    ]
    assert column(found, "device") == [-1, -1, 0, 0, 1]
    assert [(device.name, device.type) for device in found.devices] == [
        ("alveo0", "fpga"),
        ("alveo1", "fpga"),
    ]
    assert len(set(column(found, "stream", *DEVICE_WORK))) == 3
    assert column(found, "bytes", Kind.MEMCPY) == [4096]
    assert [int(row) for row in join_launches(found).launch] == [-1, -1, -1, 1, -1]


@pytest.mark.parametrize(
    ("unit", "start", "duration"),
    [
        ("", "1500", "0.25"),
        ("_ns", "1500000", "250"),
        ("_us", "1500", "0.25"),
        ("_ms", "1.5", "0.00025"),
        ("_s", "0.0015", "2.5e-7"),
    ],
)
def test_units(unit: str, start: str, duration: str) -> None:
    text = f"lane,kind,name,start{unit},duration{unit}\n"
    text += f"a,other,first,0,0\nb,other,x,{start},{duration}"
    assert rows(trace.read(text.encode()))[1][2:] == (1_500_000, 250)


def test_unix_time_keeps_every_nanosecond() -> None:
    text = (
        "lane,kind,name,start_ns,duration_ns\n"
        "a,operator,x,1700000000000000001,5\n"
        "a,operator,y,1700000000000000003,5\n"
    )
    found = trace.read(text.encode())
    assert found.base_ns == 1_700_000_000_000_000_001
    assert column(found, "ts") == [0, 2]


def test_cells_are_only_text() -> None:
    text = (
        "lane,kind,name,start,duration\n"
        "a,operator,\"=cmd|'/c calc'!A1\",0,1\n"
        'a,operator,"two\nlines, ""quoted""",1,1\n'
    )
    assert [row[0] for row in rows(trace.read(text.encode()))] == [
        "=cmd|'/c calc'!A1",
        'two\nlines, "quoted"',
    ]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_what_spreadsheets_write(delimiter: str) -> None:
    text = "Lane,Kind,Name,Start,Duration\r\nGPU0/s,Kernel,k,0,1\r\n\r\n".replace(",", delimiter)
    for data in (text.encode("utf-8-sig"), gzip.compress(text.encode())):
        found = trace.read(data)
        assert rows(found) == [("k", "kernel", 0, 1000)]
        assert found.devices[0].type == "cuda"


HEADER = "lane,kind,name,start,duration"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{HEADER}\na,kernel,k,0", "line 2: it has 4 cells, the header has 5"),
        (f"{HEADER}\na,kernle,k,0,1", "line 2: there is no kind 'kernle'; kinds are other, oper"),
        (f"{HEADER}\na,kernel,k,0,1\na,kernel,k,soon,1", "line 3: the start 'soon' is no time"),
        (f"# one\n\n{HEADER}\na,kernel,k,0,-1", "line 4: the duration '-1' is negative"),
        (f"{HEADER}\na,kernel,k,nan,1", "the start 'nan' is no time"),
        (f"{HEADER}\na,kernel,k,1e999999999,1", "the start '1e999999999' is no time"),
        (f"{HEADER}\na,kernel,k,9e15,1", "further away than 146 years"),
        (f"{HEADER}\n ,kernel,k,0,1", "line 2: the lane has no name"),
        (f"{HEADER},bytes\na,memcpy,k,0,1,many", "line 2: the bytes 'many' is no whole number"),
        (f"{HEADER},start_ns\na,kernel,k,0,1,2", "exactly one of the columns start, start_ns"),
        ("lane,kind,name,start\na,kernel,k,0", "exactly one of the columns duration"),
        ("lane,kind,name\x1dx,start,duration\na,other,k,0,1", "plain text, not JSON"),
        (f"{HEADER},name\na,kernel,k,0,1,2", "line 1: two columns have the same name"),
        (f'{HEADER}\na,kernel,"k,0,1', "line 2: unexpected end of data"),
        (f"{HEADER}\na,kernel,{'k' * 2_000_000},0,1", "longer than 1,048,576 characters"),
    ],
)
def test_errors_name_their_line(text: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        trace.read(text.encode())


def test_other_tables_are_no_lane_files() -> None:
    with pytest.raises(TraceError, match="plain text, not JSON"):
        trace.read(b"name,calls,total\ngemm,1,2\n")
