"""WB203: the same wait costs nothing where the device works on, and a gap where it runs dry."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.findings.loops import Loop, fired, looped, of
from workbench.findings.sync_in_loop import sync_in_loop
from workbench.run.facts import gather

US = 1_000


def waiting(loop: Loop, at: float, *, busy: bool) -> None:
    """The host waits from 20 to 515 for a kernel that ends at 510; ``busy``: another one follows.

    Launched from 1000 on, the next step's kernel begins at 1010.
    """
    loop.launch("gemm", call=(at, 5), kernel=(at + 10, 500))
    if busy:
        loop.launch("gemm", call=(at + 6, 5), kernel=(at + 510, 500))
    loop.trace.op("aten::item", at + 18, 498)
    loop.trace.op("aten::_local_scalar_dense", at + 19, 496.5)
    loop.trace.runtime("cudaStreamSynchronize", at + 20, 495, correlation=90_000 + int(at))


def dry(loop: Loop, at: float) -> None:
    waiting(loop, at, busy=False)


def fed(loop: Loop, at: float) -> None:
    waiting(loop, at, busy=True)


def test_the_saving_is_the_gap_behind_the_wait_and_not_the_wait(tmp_path: Path) -> None:
    """Idle from 510 to 1010: up to the next launch at 1000 it is the wait's doing: 490 µs.

    Replayed without the wait, a step takes the host's other 505 µs or the device's 500, whichever
    is longer: at most 495 to 500 can go.
    """
    run = looped(dry, 1000).run(tmp_path)
    finding = fired(run, "WB203")
    assert (finding.verdict, finding.severity) == ("yes", "critical")
    assert 0.9 * 490 * US < (finding.saving_ns_per_step_at_most or 0) <= 500 * US
    pieces = sync_in_loop(replace(gather(run.ranks[0], None), bounds_ns=None))
    assert pieces is not None
    assert pieces.saving_ns_per_step_at_most == pytest.approx(490 * US)
    assert finding.evidence["wait_us_per_step"] == pytest.approx(495)
    assert "aten::item" in finding.title
    assert ".item()" in finding.advice


def test_the_same_wait_costs_nothing_while_the_device_works(tmp_path: Path) -> None:
    """H01: equal calls, no gap: ruled out, and it opens no page."""
    run = looped(fed, 1000).run(tmp_path)
    finding = fired(run, "WB203")
    assert (finding.verdict, finding.severity) == ("no", "info")
    assert finding.evidence["wait_us_per_step"] == pytest.approx(495)
    assert (finding.saving_ns_per_step_at_most or 0) < 1 * US
    assert not repr(run).splitlines()[1].startswith(finding.title)


def test_a_hidden_sync_is_named_by_its_operator(tmp_path: Path) -> None:
    """H03: a boolean mask: index > nonzero > copy to the host > wait."""

    def masked(loop: Loop, at: float) -> None:
        loop.launch("gemm", call=(at, 5), kernel=(at + 10, 500))
        loop.trace.op("aten::index", at + 15, 510)
        loop.trace.op("aten::nonzero", at + 16, 505)
        loop.copy("Memcpy DtoH (Device -> Pageable)", call=(at + 17, 2), copied=(at + 510, 2))
        loop.trace.runtime("cudaStreamSynchronize", at + 20, 495, correlation=90_000 + int(at))

    finding = fired(looped(masked, 1000).run(tmp_path), "WB203")
    assert finding.title.startswith("aten::nonzero in aten::index")
    assert "torch.where" in finding.advice


def test_the_line_is_named_where_stacks_were_recorded(tmp_path: Path) -> None:
    def traced(loop: Loop, at: float) -> None:
        number = int(at)
        loop.trace.python("train.py(12): step", at, 1000, ident=2 * number + 1, parent=None)
        loop.trace.python(
            "torch/_tensor.py(900): item", at + 17, 500, ident=2 * number + 2, parent=2 * number + 1
        )
        waiting(loop, at, busy=False)

    assert "train.py(12): step" in fired(looped(traced, 1000).run(tmp_path), "WB203").title


def test_an_explicit_synchronization_is_named_by_the_range_around_it(tmp_path: Path) -> None:
    def timed(loop: Loop, at: float) -> None:
        loop.launch("gemm", call=(at, 5), kernel=(at + 10, 500))
        loop.trace.range("timer", at + 18, 500)
        loop.trace.runtime("cudaDeviceSynchronize", at + 20, 495, correlation=90_000 + int(at))

    finding = fired(looped(timed, 1000).run(tmp_path), "WB203")
    assert finding.title.startswith("timer")
    assert "torch.cuda.synchronize()" in finding.advice


def test_a_loop_on_the_cpu_never_synchronizes(tmp_path: Path) -> None:
    def masked(loop: Loop, at: float) -> None:
        loop.trace.op("aten::index", at + 15, 510)
        loop.trace.op("aten::nonzero", at + 16, 505)

    assert of(looped(masked, 1000, gpu=False).run(tmp_path), "WB203") is None


def test_a_wait_behind_the_last_step_is_no_wait_in_the_loop(tmp_path: Path) -> None:
    """The profiler itself synchronizes when it stops."""

    def plain(loop: Loop, at: float) -> None:
        loop.launch("gemm", call=(at, 5), kernel=(at + 10, 995))

    loop = looped(plain, 1000)
    loop.trace.runtime("cudaDeviceSynchronize", 22_000, 5000, correlation=99_999)
    assert of(loop.run(tmp_path), "WB203") is None
