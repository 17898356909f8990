"""Shared memory, precision, versions, load and tool-chain of this machine."""

import getpass
import multiprocessing
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from workbench.machine import load, native_dtypes, shared_memory, versions
from workbench.machine.cpu_flags import cpu_flags, cpu_model, flags_tell
from workbench.machine.toolchain import compile_lacks, cpp_compiler, start_method
from workbench.machine.tracing import counters_restricted, device_tracing


def test_shared_memory_is_size_and_what_an_ordinary_user_may_still_write(
    monkeypatch: pytest.MonkeyPatch,
):
    # Docker's default of 64 MB, half of it in use: 16 384 and 8 192 blocks of 4 KiB.
    taken = SimpleNamespace(f_frsize=4096, f_blocks=16384, f_bfree=9000, f_bavail=8192)
    monkeypatch.setattr(os, "statvfs", lambda _: taken)
    found = shared_memory()
    assert found is not None
    assert (found.size, found.free) == (64 * 2**20, 32 * 2**20)


def test_no_shared_memory_is_none(tmp_path: Path):
    assert shared_memory(tmp_path / "absent") is None


@pytest.mark.parametrize(
    ("flags", "native"),
    [
        # A Xeon with AVX-512 but no bf16 instructions: oneDNN says yes and converts to fp32.
        ({"avx2", "avx512f"}, {"bf16": False, "fp16": False}),
        ({"avx2", "avx512f", "avx512_bf16"}, {"bf16": True, "fp16": False}),
        # f16c and AVX2 only convert fp16, which oneDNN counts as support.
        ({"avx2", "f16c", "amx_bf16"}, {"bf16": True, "fp16": False}),
        ({"amx_bf16", "amx_fp16", "avx512_fp16"}, {"bf16": True, "fp16": True}),
    ],
)
def test_a_type_is_native_only_with_instructions_that_multiply_in_it(
    monkeypatch: pytest.MonkeyPatch, flags: set[str], native: dict[str, bool]
):
    fake = SimpleNamespace(
        _is_mkldnn_bf16_supported=lambda: True, _is_mkldnn_fp16_supported=lambda: True
    )
    monkeypatch.setattr(torch.ops, "mkldnn", fake)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr("workbench.machine.dtypes.cpu_flags", lambda: frozenset(flags))
    assert native_dtypes() == native


def test_without_flags_torchs_own_checks_decide(monkeypatch: pytest.MonkeyPatch):
    fake = SimpleNamespace(
        _is_mkldnn_bf16_supported=lambda: True, _is_mkldnn_fp16_supported=lambda: False
    )
    monkeypatch.setattr(torch.ops, "mkldnn", fake)
    monkeypatch.setattr("platform.machine", lambda: "AMD64")
    monkeypatch.setattr("workbench.machine.dtypes.cpu_flags", lambda: None)
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    assert native_dtypes() == {"bf16": False, "fp16": False}


@pytest.mark.parametrize(
    ("machine", "line", "native"),
    [
        ("x86_64", "flags\t\t: fpu avx2 avx512_bf16", (True, False)),
        ("aarch64", "Features\t: fp asimd asimdhp bf16", (True, True)),
        ("aarch64", "Features\t: fp asimd", (False, False)),
        ("riscv64", "isa\t: rv64gc", (None, None)),
    ],
)
def test_flags_of_linux_on_both_families(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    machine: str,
    line: str,
    native: tuple[bool | None, bool | None],
):
    told = tmp_path / "cpuinfo"
    told.write_text(f"processor\t: 0\nmodel name\t: A chip\n{line}\n")
    monkeypatch.setattr("platform.machine", lambda: machine)
    flags = cpu_flags(told)
    assert (flags_tell("bf16", flags), flags_tell("fp16", flags)) == native
    assert cpu_model(told) == "A chip"


def test_a_torch_that_does_not_tell_gives_none(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.ops, "mkldnn", SimpleNamespace())
    assert native_dtypes() == {"bf16": None, "fp16": None}


def test_versions_name_what_is_there_and_null_what_is_not(monkeypatch: pytest.MonkeyPatch):
    found = versions()
    assert found["torch"] == torch.__version__
    assert found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert found["hip"] == torch.version.hip


def test_versions_hold_no_user_host_or_path():
    text = " ".join(value or "" for value in versions().values())
    assert socket.gethostname() not in text
    assert "/" not in text
    assert getpass.getuser() not in text.split()


def test_another_busy_process_is_seen_as_competing_load():
    busy = "import time\nend = time.time() + 20\nwhile time.time() < end: pass"
    with subprocess.Popen([sys.executable, "-c", busy]) as other:
        try:
            time.sleep(0.3)
            found = load(1.0)
        finally:
            other.kill()
    # It takes one whole processor of this many, unless it must share it with still others.
    assert found.others_cpu_share >= 0.4 / len(os.sched_getaffinity(0))
    assert found.load_average is not None


def test_own_work_is_not_competing_load(monkeypatch: pytest.MonkeyPatch):
    # 2 processors for 1 s: 1.5 s busy, of which 1.4 s are ours.
    spent = iter([{"user": 0.0, "idle": 0.0}, {"user": 1.5, "idle": 0.5}])
    own = iter([0.0, 1.4])
    clock = iter([0.0, 1.0])
    room = "workbench.machine.competing_load"
    monkeypatch.setattr(f"{room}._spent", lambda: next(spent))
    monkeypatch.setattr(f"{room}._own_s", lambda: next(own))
    monkeypatch.setattr(f"{room}.usable_cpus", lambda: 2)
    monkeypatch.setattr(f"{room}.time", SimpleNamespace(perf_counter=lambda: next(clock), sleep=id))
    found = load()
    assert found.others_cpu_share == pytest.approx(0.05)
    assert found.steal_share is None


def test_asking_for_the_start_method_does_not_fix_it():
    ask = (
        "import multiprocessing as m; from workbench.machine.toolchain import start_method; "
        "start_method(); m.set_start_method('spawn'); print(start_method())"
    )
    done = subprocess.run(
        [sys.executable, "-c", ask], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "spawn"
    assert start_method() in multiprocessing.get_all_start_methods()


def test_the_compiler_that_the_user_chose_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    chosen = tmp_path / "my-c++"
    chosen.write_text("#!/bin/sh\n")
    chosen.chmod(0o755)
    monkeypatch.setenv("CXX", str(chosen))
    assert cpp_compiler() == "my-c++"


def test_no_compiler_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert cpp_compiler() is None
    assert "C++ compiler" in (compile_lacks("cpu") or "")


def test_compile_for_a_gpu_needs_triton(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("workbench.machine.toolchain.find_spec", lambda name: None)
    assert "Triton" in (compile_lacks("cuda") or "")


@pytest.mark.parametrize(
    ("value", "user", "restricted"), [(1, 1000, True), (1, 0, False), (0, 1000, False)]
)
def test_counters_are_restricted_for_ordinary_users_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: int, user: int, restricted: bool
):
    parameters = tmp_path / "params"
    parameters.write_text(f"EnableMSI: 1\nRmProfilingAdminOnly: {value}\n")
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert counters_restricted(parameters) is restricted


def test_without_the_driver_nobody_knows_about_counters(tmp_path: Path):
    assert counters_restricted(tmp_path / "absent") is None


def test_a_torch_without_cuda_tracing_says_so(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.profiler, "supported_activities", set)
    found = device_tracing("cuda")
    assert found.possible is False
    assert "without tracing of cuda" in found.reason


def test_rights_on_a_device_show_only_in_a_recording(monkeypatch: pytest.MonkeyPatch):
    activity = SimpleNamespace(name="CUDA")
    monkeypatch.setattr(torch.profiler, "supported_activities", lambda: [activity])
    assert device_tracing("cuda").possible is None
    assert device_tracing("hip").possible is None
