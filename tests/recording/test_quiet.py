"""What the profiler writes to the error stream does not reach notebooks; the rest does."""

import os

import pytest

from workbench.recording.quiet import quiet_kineto

STAMP = "2026-12-02 01:17:18 10731:10731"


def test_kineto_is_kept_quiet_and_others_are_not(capfd: pytest.CaptureFixture[str]) -> None:
    with quiet_kineto() as messages:
        os.write(2, f"USDT:{STAMP} SyncActivityProfilerHandler.cpp:52] profiler_start\n".encode())
        os.write(2, b"a warning of the user's own library\n")
        os.write(2, f"WARNING:{STAMP} CuptiActivityApi.cpp:9] no permission\n".encode())
        os.write(2, b"ERROR: External init callback must run in same thread as registerClient\n")
        os.write(
            2,
            f"WARNING:{STAMP} init.cpp:1] External init callback must run in same thread as "
            "registerClient (1 != 2)\n".encode(),
        )
    assert capfd.readouterr().err == "a warning of the user's own library\n"
    assert messages == ["no permission"]


def test_the_error_stream_is_back_afterwards_also_after_an_error(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def fail() -> None:
        with quiet_kineto():
            os.write(2, b"before\n")
            raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011 - raised by the test itself
        fail()
    os.write(2, b"after\n")
    assert capfd.readouterr().err == "before\nafter\n"
