"""What people met with several ranks or devices: which finding names it, and what stays unsaid."""

from pathlib import Path
from typing import Any

import pytest

from tests.findings.loops import Loop, fired, looped, of
from workbench.analysis.buckets import Buckets
from workbench.findings import diagnose
from workbench.findings.finding import CommunicationFacts, Facts, Finding, StragglerFacts

MS, MB = 1_000_000, 1_000_000
WARNED = (
    "UserWarning: find_unused_parameters=True was specified in DDP constructor, but did not find "
    "any unused parameters in the forward pass."
)
DDP: dict[str, Any] = {"mode": "ddp", "world_size": 2}


def told(facts: Facts, code: str) -> Finding | None:
    return next((each for each in diagnose(facts) if each.code == code), None)


def spread_by_threads(devices: int) -> Loop:
    """L01: steps of 1000 µs; device 0 works 900 of them, device 1 only 600.

    Broadcast takes 100, scatter 50 and gather 50 µs of the interpreter in each step: 20 %.
    """

    def body(loop: Loop, at: float) -> None:
        loop.trace.range("DataParallel.forward", at + 10, 500)
        loop.trace.op("Broadcast", at + 20, 100)
        loop.trace.op("Scatter", at + 130, 50)
        loop.trace.op("Gather", at + 400, 50)
        loop.trace.op("aten::gather", at + 460, 30)  # of a tensor: nothing is moved
        number = int(at) * 10 + 1
        for device, busy in ((0, 900), (1, 600))[:devices]:
            call = at + 200 + 20 * device
            loop.trace.launched(
                "gemm",
                call=(call, 5),
                kernel=(at + 1000 - busy, busy),
                correlation=number + device,
                device=device,
            )

    return looped(body, 1000, steps=22)


def test_threads_of_data_parallel_are_told_with_what_they_cost_and_which_device_waits(
    tmp_path: Path,
) -> None:
    """L01: 200 of 1000 µs are copying, spreading and collecting; the devices are busy unevenly."""
    finding = fired(spread_by_threads(2).run(tmp_path), "WB403")
    assert finding.severity == "warning"
    assert finding.share_of_window == pytest.approx(0.2)
    assert finding.saving_ns_per_step_at_most == 200_000
    busy = finding.evidence["busy_share"]
    assert busy["0"] == pytest.approx(0.9, abs=0.01)
    # the window of device 1 begins with its first kernel, 400 µs late: 22 × 600 of 21 600
    assert busy["1"] == pytest.approx(22 * 600 / 21_600)
    assert finding.setting == {"parallel": "ddp"}
    assert finding.call == "torch.nn.parallel.DistributedDataParallel(model)"


def test_data_parallel_over_one_device_does_nothing(tmp_path: Path) -> None:
    finding = fired(spread_by_threads(1).run(tmp_path), "WB403")
    assert "no effect" in finding.title
    assert finding.saving_ns_per_step_at_most is None


def test_needless_search_is_told_in_torchs_words_and_promises_nothing() -> None:
    """L03: turned off elsewhere with no change that could be measured; so on/off is a switch."""
    finding = told(Facts(warnings=(WARNED,), effective={"parallel": DDP}), "WB403")
    assert finding is not None
    assert finding.severity == "info"
    assert finding.saving_ns_per_step_at_most is finding.speedup_at_most is None
    assert finding.evidence["warning"] == WARNED
    assert finding.setting == {"parallel": {**DDP, "find_unused_parameters": False}}
    assert told(Facts(warnings=("UserWarning: something else",)), "WB403") is None


def test_without_steps_nothing_is_told_of_each_step(tmp_path: Path) -> None:
    """The same work as a recording without marks: what all of it took is no number of a step."""
    loop = spread_by_threads(2)
    for number in range(22):
        loop.trace.range("gloo:all_reduce", number * 1000 + 600, 300, tid=7)["args"].update(
            {"Input Dims": [[1_000_000]], "Input type": ["float"]}
        )
    loop.trace.events = [e for e in loop.trace.events if "ProfilerStep" not in str(e.get("name"))]
    (finding,) = (each for each in loop.run(tmp_path).findings if each.code == "WB403")
    assert "each step" not in finding.title
    assert "busy: device 0" in finding.title
    assert finding.evidence["copying_and_spreading_us_per_step"] is None
    assert finding.saving_ns_per_step_at_most is finding.share_of_window is None
    only_gloo = looped(lambda loop, at: None, 1000, steps=0)
    only_gloo.launch("gemm", call=(10, 5), kernel=(20, 900))
    made = only_gloo.trace.range("gloo:all_reduce", 100, 300, tid=7)
    made["args"].update({"Input Dims": [[1_000_000]], "Input type": ["float"]})
    assert of(only_gloo.run(tmp_path), "WB403") is None


@pytest.mark.parametrize(("elements", "fires"), [(1_000_000, True), (4, False)])
def test_a_host_backend_beside_a_device_is_told_where_it_moves_gradients(
    tmp_path: Path, elements: int, fires: bool
) -> None:
    """4 MB of gradients over gloo are a fault; 16 bytes of a loss are none."""

    def body(loop: Loop, at: float) -> None:
        loop.launch("gemm", call=(at + 10, 5), kernel=(at + 20, 900))
        shapes = {"Input Dims": [[elements]], "Input type": ["float"]}
        made = loop.trace.range("gloo:all_reduce", at + 100, 300, tid=7)
        made["args"].update(shapes)

    found = of(looped(body, 1000, steps=4).run(tmp_path), "WB403")
    assert (found is not None) is fires
    if found is not None:
        assert found.evidence["bytes_per_step"] == 4_000_000


@pytest.mark.parametrize(
    ("ranks", "threads", "cpus", "setting"),
    [
        (2, 2, 2, {"threads": 1}),
        (8, 32, 64, {"threads": 8}),
        (4, 1, 2, None),
        (2, 1, 2, "silent"),
        (1, 2, 1, "silent"),
    ],
    ids=["2x2 on 2", "8x32 on 64", "more ranks than processors", "fits", "one process"],
)
def test_threads_of_all_ranks_against_the_processors(
    ranks: int, threads: int, cpus: int, setting: object
) -> None:
    """L04: every rank sizes its pool to the whole machine unless the launcher limits it."""
    facts = Facts(
        effective={"world_size": ranks, "threads": threads}, environment={"usable_cpus": cpus}
    )
    finding = told(facts, "WB106")
    if setting == "silent":
        assert finding is None
        return
    assert finding is not None
    assert f"{ranks} ranks × {threads} threads = {ranks * threads}" in finding.title
    assert finding.setting == setting


def exposed(buckets: Buckets | None, **parallel: Any) -> Finding:
    """Twenty steps of 100 ms, 30 of them exposed transfer."""
    communication = CommunicationFacts(
        device=0,
        window_ns=2000 * MS,
        exposed_wait_ns=0,
        exposed_transfer_ns=600 * MS,
        calls=100,
        exposed_calls=20,
        ranks=2,
    )
    facts = Facts(
        trace_steps=20,
        communication=(communication,),
        buckets=buckets,
        effective={"parallel": {**DDP, **parallel}} if parallel is not None else {},
    )
    finding = told(facts, "WB401")
    assert finding is not None
    return finding


def five(last_ms: float, others_ms: float, size: int = 25 * 2**20) -> Buckets:
    return Buckets(
        passes=20,
        buckets=5,
        bytes=size,
        total_ns=50 * MS,
        exposed_ns=(last_ms + others_ms) * MS,
        last_exposed_ns=last_ms * MS,
        backward_ns=60 * MS,
    )


def test_a_long_last_bucket_is_answered_by_smaller_ones_and_long_buckets_by_fewer_bytes() -> None:
    """L08: of five buckets of 25 MiB only the last one is exposed; half its size halves that."""
    last = exposed(five(30, 0))
    assert "only the last of 5 gradient buckets" in last.title
    assert last.setting == {"parallel": {**DDP, "bucket_mb": 12.5}}
    most = exposed(five(6, 24))
    assert "only the last" not in most.title
    assert most.setting == {"parallel": {**DDP, "compression": "bf16"}}
    assert exposed(five(6, 24), compression="bf16").setting is None, "nothing is left to switch"
    tiny = exposed(five(30, 0, size=2**20))
    assert tiny.setting == {"parallel": {**DDP, "compression": "bf16"}}, "buckets are small already"


def test_sends_of_a_pipeline_are_not_called_one_rank_alone() -> None:
    """Both stages were seen; a send is not divided into transfer and waiting all the same."""
    communication = CommunicationFacts(
        device=None,
        window_ns=2000 * MS,
        exposed_wait_ns=None,
        exposed_transfer_ns=600 * MS,
        calls=10,
        exposed_calls=10,
        ranks=2,
    )
    finding = told(Facts(trace_steps=20, communication=(communication,)), "WB401")
    assert finding is not None
    assert finding.verdict == "cannot_tell"
    assert "alone" not in finding.title
    assert "slowest stage" in finding.advice


def test_the_switch_for_a_stragglers_late_phase_is_the_one_of_its_own_finding() -> None:
    """Rank 3 is late because it waits 60 of 100 ms for data: what speeds its loader up helps."""
    late = StragglerFacts(
        wait_deficit_ns_per_step=25 * MS,
        step_ns=100 * MS,
        ranks=8,
        steps=20,
        phase="input",
        excess_ns_per_step=25 * MS,
    )
    facts = Facts(
        rank=3,
        straggler=late,
        step_ns=(100 * MS,) * 20,
        input_ns=(60 * MS,) * 20,
        effective={"workers": 0, "samples_per_step": 8},
        environment={"usable_cpus": 8},
    )
    own, found = told(facts, "WB101"), told(facts, "WB402")
    assert own is not None
    assert own.setting
    assert found is not None
    assert found.setting == own.setting
