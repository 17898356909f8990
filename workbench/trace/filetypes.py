"""Files that are not traces are named for what they are, with the way to get a trace."""

import re
from collections.abc import Callable

HOW_TO_GET_A_TRACE = (
    "A trace comes from torch.profiler: prof.export_chrome_trace('trace.json.gz'), "
    "tensorboard_trace_handler, or workbench's wb.profile and wb.capture."
)
CHROME_ENDINGS = (".json", ".json.gz", ".pfw", ".pfw.gz")
TRACE_ENDINGS = (*CHROME_ENDINGS, ".xplane.pb", ".sqlite")
"""By which a trace is told from what lies beside it in an archive."""
HEAD = 1 << 16
"""Bytes of a file by which its kind is told."""
EMPTY = "empty: the profiler was interrupted before it wrote, or the disk was full."
_PICKLE_MEMORY = (
    "a pickle, perhaps a memory snapshot: open that with wb.open or workbench analyze, which read "
    "plain values alone. A pickle can run code, so it is never unpickled."
)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a]")
_WIDE = re.compile(rb"\0{0,3}[\[{]\0{1,3}[ \t\r\n\"{\[\]}]\0{0,3}", re.S)
_JSON = re.compile(rb"\s*[\[{]\s*[\"{\[\]}]")
_SQLITE = b"SQLite format 3\0"

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"version https://git-lfs", "a Git-LFS pointer: run `git lfs pull` to fetch the real file."),
    (
        b"NVIDIA Tegra Profiler",
        "a report of Nsight Systems (.nsys-rep, .qdrep) in its own closed format: run `nsys export "
        "--type sqlite report.nsys-rep`, with the nsys that wrote it or a newer one, and open the "
        ".sqlite file.",
    ),
    (
        b"NVR\0",
        "a report of Nsight Compute (.ncu-rep): it holds single kernels without a timeline. Record "
        "one with `nsys profile`, `nsys export --type sqlite`.",
    ),
    (b"\x89PNG", "an image (PNG)."),
    (b"\xff\xd8\xff", "an image (JPEG)."),
    (b"GIF8", "an image (GIF)."),
    (b"%PDF", "a PDF document."),
    (b"\x93NUMPY", "a NumPy array."),
    (b"ARROW1", "an Arrow table, perhaps the cache of a trace: open the trace or its folder."),
    (b"PAR1", "a Parquet table."),
    (b"\x7fELF", "a program (ELF)."),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd: unpack it with `unzstd`, and open the result."),
    (b"\xfd7zXZ", "a damaged xz file: copy it again."),
    (b"BZh", "a damaged bzip2 file: copy it again."),
    (b"\x04\x22\x4d\x18", "compressed with lz4: unpack it with `unlz4`, and open the result."),
    (b"\x1f\x9d", "compressed with compress: unpack it with `uncompress`, and open the result."),
    (b"Rar!", "a RAR archive: unpack it, and open the trace inside."),
    (b"7z\xbc\xaf", "a 7-Zip archive: unpack it, and open the trace inside."),
    (b"PK\x05\x06", "an empty zip archive."),
    (b"\xff\xfe\0\0", "text in UTF-32: save it as UTF-8."),
    (b"\0\0\xfe\xff", "text in UTF-32: save it as UTF-8."),
    (b"\xff\xfe", "text in UTF-16, as PowerShell's `>` writes it: save it as UTF-8."),
    (b"\xfe\xff", "text in UTF-16: save it as UTF-8."),
)

Test = Callable[[bytes], bool]
_TESTS: tuple[tuple[Test, str], ...] = (
    (lambda head: head.startswith(_SQLITE), "an SQLite database."),
    (
        lambda head: bool(re.match(rb"\s*<(!doctype\s+html|html|head|body|\?xml|svg)", head, re.I)),
        "a web page (HTML or XML), often a failed download: fetch the raw file again, and check "
        "that the link does not ask for a login.",
    ),
    (
        lambda head: bool(_WIDE.match(head)),
        "text in UTF-16 or UTF-32, as PowerShell's `>` writes it: save it as UTF-8.",
    ),
    (lambda head: head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05", _PICKLE_MEMORY),
    (
        lambda head: (
            head[:1] == b"\n"
            and not head.isascii()
            and any(mark in head for mark in (b"/host:", b"/device:", b"XLA Modules", b"xplane"))
        ),
        "an XLA profile (xplane.pb) of JAX or TensorFlow.",
    ),
    (
        lambda head: head.startswith(b"\n") and bool(_CONTROL.search(head[:64])),
        "a binary protobuf file that is neither an XLA profile nor a Perfetto trace, such as an "
        "ONNX model.",
    ),
    (
        lambda head: b"\0" in head[:1024] and not _JSON.match(head),
        "a binary file of unknown kind.",
    ),
)

_KEYS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("schema", "nodes"),
        "a PyTorch execution trace (ExecutionTraceObserver, Chakra): it holds the operators' "
        "graph without times.",
    ),
    (("segments", "device_traces"), "a memory snapshot in JSON."),
    (
        ("rocprofiler-sdk-tool",),
        "a rocprofv3 result to which something else was added: open the file that rocprofv3 wrote.",
    ),
    (("cells", "nbformat"), "a Jupyter notebook."),
    (("model_type",), "a model's configuration."),
    (("version", "shared", "profiles"), "a speedscope profile."),
    (("flamegraph",), "a flame graph."),
)


def wrong_kind(head: bytes) -> str | None:
    """What a file is whose first bytes show that it is no trace; ``None`` if it may be one."""
    if not head.strip():
        return EMPTY if len(head) < HEAD else None
    if not head.strip(b"\0"):
        return "filled with zero bytes: the disk was full, or a copy was interrupted."
    for magic, meaning in _MAGIC:
        if head.startswith(magic):
            return meaning
    for test, meaning in _TESTS:
        if test(head):
            return meaning
    return None


def wrong_object(keys: list[str]) -> str:
    """What a JSON object without ``traceEvents`` is, by its keys."""
    for wanted, meaning in _KEYS:
        if all(key in keys for key in wanted):
            return meaning
    if not keys:
        return "an empty JSON object."
    shown = ", ".join(key[:40] for key in keys[:6]) + (", …" if len(keys) > 6 else "")
    return f'a JSON object without "traceEvents" (its keys: {shown}).'


def wrong_array(first: object) -> str:
    """What a JSON array is whose elements are not events."""
    if isinstance(first, list):
        return "a memory timeline (export_memory_timeline) or a plain table, not a trace."
    return "a JSON array of other values, not of events."
