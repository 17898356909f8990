"""What a step would take without something, on loops small enough to replay by hand.

All loops repeat exactly, so that a step's time after the change is known without any replay: the
slowest of what a step cannot be shorter than.
"""

import pytest

from tests.analysis.replay.cases import on_device, path_us, replayed, saving_us
from tests.kineto import Kineto
from workbench.analysis.replay.answers import bounds, scenarios, what_if
from workbench.analysis.replay.replay import Replay, prepare
from workbench.analysis.replay.scenario import (
    faster_family,
    hidden,
    host_free,
    without_gap,
    without_late_ranks,
)
from workbench.errors import TraceError

US = 1_000


def launch_bound() -> Kineto:
    """Steps of 1000 us: ten calls of 90 us, 10 us of other code after each; kernels of 20 us."""
    made = Kineto(gpu=True)
    for number in (1, 2, 3):
        made.step(number, 1000 * number, 1000)
        for i in range(10):
            at = 1000 * number + 100 * i
            kernel = (at + 95, 20)
            made.launched("k", call=(at, 90), kernel=kernel, correlation=100 * number + i)
    return made


def test_launches_free_gives_the_device_time() -> None:
    """Ten kernels of 20 us are left of 1000; the host needs 10 x 10 us beside them."""
    assert saving_us(on_device(launch_bound()), "launch") == 1000 - 200


def test_other_code_free_leaves_the_launches() -> None:
    """Ten calls of 90 us are left."""
    assert saving_us(on_device(launch_bound()), "host_other") == 100


def test_two_at_once_may_save_more_than_either() -> None:
    """Launches and the code around them: the device's 200 us are left, as with launches alone."""
    replay = on_device(launch_bound())
    assert saving_us(replay, host_free()) == 800


def test_faster_kernels_save_nothing_in_a_launch_bound_loop() -> None:
    """Only the last kernel of all could end sooner: 10 us in two steps."""
    assert saving_us(on_device(launch_bound()), faster_family("other")) == 10 / 2


def test_the_path_of_a_launch_bound_step() -> None:
    """From 2015, when step 1 is done, to 3015.

    The rest of the first call (75), nine calls (810), the last kernel's latency (5) and its 20 us;
    between the calls 9 x 10 us.
    """
    assert path_us(on_device(launch_bound(), 2)) == {
        "launch": 75 + 810 + 5,
        "host_other": 90,
        "compute": 20,
    }


def synchronizing(*, name: str = "cudaStreamSynchronize") -> Kineto:
    """Steps of 200 us: a kernel of 100 us, a wait for it until 130, other code until 200."""
    made = Kineto(gpu=True)
    for number in (1, 2, 3, 4):
        at = 200 * number
        made.step(number, at, 200)
        made.launched("k", call=(at, 10), kernel=(at + 20, 100), correlation=number)
        made.runtime(name, at + 30, 100, correlation=1000 + number)
    return made


@pytest.mark.parametrize("name", ["cudaStreamSynchronize", "cudaDeviceSynchronize"])
def test_a_synchronization_gone_lets_the_host_run_ahead(name: str) -> None:
    """The device needs 100 us a step, the host 10 + 20 + 70: a step takes 100."""
    assert saving_us(on_device(synchronizing(name=name)), "synchronization") == 100


def test_faster_kernels_shorten_what_the_host_waits_for() -> None:
    """50 us less to wait for, and everything behind the wait comes 50 us sooner."""
    assert saving_us(on_device(synchronizing()), faster_family("other")) == 50


def test_code_behind_the_wait_free() -> None:
    """70 us behind the wait; the 20 before it lie beside the kernel's work and save nothing."""
    assert saving_us(on_device(synchronizing()), "host_other") == 70


def test_the_path_of_a_synchronizing_step() -> None:
    """From 520, when the kernel of step 2 ends, to 720.

    10 us until the wait returns, 70 of other code, the call, 10 us latency, 100 us of work.
    """
    assert path_us(on_device(synchronizing(), 3)) == {
        "compute": 100,
        "host_other": 70,
        "launch": 20,
        "synchronization": 10,
    }


def test_a_gap_gone_saves_its_length_when_nothing_else_holds_the_work() -> None:
    """The device idles from 520 to 620 in step 3, and the path leads through all of it.

    Times in the columns count from the first event, which is at 200.
    """
    replay = on_device(synchronizing(), 3)
    assert saving_us(replay, without_gap(320 * US, 420 * US)) == 100
    assert saving_us(replay, without_gap(330 * US, 340 * US)) == 10
    assert saving_us(replay, without_gap(425 * US, 430 * US)) == 0, "the device works then"


def overlapping() -> Kineto:
    """Steps of 100 us on two streams: 100 us of compute, beside it 60 us of another kernel.

    The host needs 20 us a step, so that the compute stream sets the pace.
    """
    made = Kineto(gpu=True)
    for number in (1, 2, 3, 4):
        at = 1000 + 100 * number
        made.step(number, 20 * number, 20)
        made.launched("gemm", call=(20 * number, 5), kernel=(at, 100), correlation=number)
        made.launched(
            "softmax",
            call=(20 * number + 5, 5),
            kernel=(at + 10, 60),
            correlation=10 + number,
            stream=20,
        )
    return made


def test_the_shorter_of_two_streams_saves_nothing() -> None:
    replay = on_device(overlapping())
    assert saving_us(replay, faster_family("softmax")) == 0


def test_the_longer_stream_saves_until_the_other_one_sets_the_pace() -> None:
    """The gemm 4 times faster needs 25 us, the softmax still 60: of 100 us, 40 are saved."""
    replay = on_device(overlapping())
    assert saving_us(replay, faster_family("gemm", 4)) == pytest.approx(40, abs=0.1)


def communicating(*, overlap: bool = False) -> Kineto:
    """Steps of 300 us: 100 us of compute, an all-reduce of 150 us behind it, 50 us of optimizer.

    Events order the streams, as torch does it. With ``overlap`` the all-reduce runs beside 150 us
    of compute more.
    """
    made = Kineto(gpu=True)
    for number in (1, 2, 3, 4):
        host, at = 60 * number, 1000 + 300 * number
        made.step(number, host, 60)
        made.launched("gemm", call=(host, 5), kernel=(at, 100), correlation=number)
        made.runtime("cudaEventRecord", host + 10, 1, correlation=100 + number)
        made.runtime("cudaStreamWaitEvent", host + 12, 1, correlation=200 + number)
        made.launched(
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            call=(host + 15, 5),
            kernel=(at + 100, 150),
            correlation=10 + number,
            stream=20,
        )
        if overlap:
            kernel = (at + 100, 150)
            made.launched("gemm2", call=(host + 22, 5), kernel=kernel, correlation=40 + number)
        made.runtime("cudaStreamWaitEvent", host + 30, 1, correlation=300 + number)
        made.launched(
            "multi_tensor_apply",
            call=(host + 35, 5),
            kernel=(at + 250, 50),
            correlation=20 + number,
        )
    return made


def test_exposed_communication_hidden() -> None:
    """100 + 50 us of compute are left, but the 150 us of the all-reduce have to fit as well."""
    assert saving_us(on_device(communicating()), hidden("communication")) == 300 - 150


def test_communication_that_is_hidden_already_saves_nothing() -> None:
    replay = on_device(communicating(overlap=True))
    assert saving_us(replay, hidden("communication")) == 0


def test_faster_compute_brings_the_communication_forward() -> None:
    """The all-reduce waits for gemm by an event: 50 us sooner, and with it the optimizer."""
    assert saving_us(on_device(communicating()), faster_family("gemm")) == 50


def test_the_path_goes_over_both_streams() -> None:
    assert path_us(on_device(communicating(), 3)) == {"compute": 150, "communication": 150}


def test_late_ranks_shorten_the_collective_to_its_transfer() -> None:
    """All ranks together tell that 110 of the 150 us were waiting."""
    replay = on_device(communicating())
    spoken = {int(row): 40 * US for row in replay.graph.work.row[replay.communication]}
    told = prepare(replay.graph, spoken)
    assert what_if(told, without_late_ranks()).saving_ns == 110 * US


def loading(*, wait: float) -> Kineto:
    """Steps of ``wait`` + 100 us: the loader, then a call of 10 us, and 90 us until the next."""
    made = Kineto(gpu=True)
    length = wait + 100
    for number in (1, 2, 3, 4):
        at = length * number
        made.step(number, at, length)
        made.loader(at, wait)
        made.launched("k", call=(at + wait, 10), kernel=(at + wait + 12, 60), correlation=number)
    return made


def test_a_slow_loader_free_leaves_the_rest_of_the_host() -> None:
    assert saving_us(on_device(loading(wait=400)), "input") == 400


def test_a_loader_free_cannot_make_the_device_faster() -> None:
    """The host would need 30 us, the device 60: of 100 us, 40 at most."""
    made = Kineto(gpu=True)
    for number in (1, 2, 3, 4):
        at = 100 * number
        made.step(number, at, 100)
        made.loader(at, 70)
        made.launched("k", call=(at + 70, 10), kernel=(at + 85, 60), correlation=number)
    assert saving_us(on_device(made), "input") == 40


def test_a_graph_is_launched_once() -> None:
    """A graph launch of 40 us brings 5 kernels of 100 us to a step of 600 us.

    Launches free: the other 560 us of host code set the pace, 40 us less; and of the two steps the
    last one ends another 10 us sooner, which was the latency of its launch.
    """
    made = Kineto(gpu=True)
    for number in (1, 2, 3):
        at = 600 * number
        made.step(number, at, 600)
        made.runtime("cudaGraphLaunch", at, 40, correlation=number)
        for i in range(5):
            made.kernel("k", at + 50 + 100 * i, 100, correlation=number)
    replay = on_device(made)
    assert saving_us(replay, "launch") == (2 * 40 + 10) / 2
    assert path_us(on_device(made, 2)) == {
        "host_other": 50,
        "launch": 50,
        "compute": 500,
    }


def test_a_full_queue_holds_the_host_back() -> None:
    """A call that waits for room in the queue is no host time: the device sets the pace.

    1100 kernels of 9.5 us, 10 us apart, take 11 ms a step. The host launches one each 4 us, and its
    last call waits until 10 ms. With kernels twice as fast a step takes 1100 x (4.75 + 0.5) us, and
    the host, which needs 4.4 ms without the wait, still keeps up.
    """
    made = Kineto(gpu=True)
    for step in (0, 1):
        made.step(step, 10_000 * step, 10_000)
        for i in range(1100):
            at = 10_000 * step + 4 * i
            call = (at, 2.0 if i < 1099 else 10_000 * (step + 1) - at)
            kernel = (100 + 10 * (1100 * step + i), 9.5)
            made.launched("k", call=call, kernel=kernel, correlation=1 + 1100 * step + i)
    saved = saving_us(on_device(made), faster_family("other"))
    assert saved == pytest.approx(11_000 - 1100 * 5.25, abs=15)


def test_a_first_use_claims_nothing() -> None:
    """Only the first complete step allocates; a repeated step would not."""
    made = Kineto(gpu=True)
    made.step(1, 0, 1000)
    made.runtime("cudaMalloc", 10, 500, correlation=9)
    made.launched("k", call=(600, 10), kernel=(620, 100), correlation=1)
    assert saving_us(on_device(made), "allocation") == 0


def test_the_record_caps_what_host_code_can_save() -> None:
    """Without the profiler a step takes 500 us, of which the device works 200: at most 300."""
    replay = on_device(launch_bound())
    found = what_if(replay, host_free(), record_step_ns=500 * US)
    assert (found.saving_ns, found.capped) == (300 * US, True)
    kernels = what_if(replay, faster_family("other"), record_step_ns=100 * US)
    assert not kernels.capped, "kernels are no slower under the profiler"


def test_bounds_tell_what_was_not_recorded() -> None:
    found = bounds(on_device(launch_bound()), absent={"input", "host_python"})
    assert found is not None
    assert found["launch"] == 800 * US
    assert found["input"] is None
    assert found["communication"] is None
    assert found["garbage_collection"] == 0


def test_without_steps_or_launches_there_is_nothing_to_replay() -> None:
    no_steps = Kineto(gpu=True)
    no_steps.launched("k", call=(0, 5), kernel=(10, 20), correlation=1)
    assert replayed(no_steps) is None
    no_launch = Kineto(gpu=True)
    no_launch.step(1, 0, 100)
    no_launch.kernel("k", 10, 20)
    assert replayed(no_launch) is None
    assert bounds(None) is None


def test_unexplained_time_makes_it_cannot_tell() -> None:
    """A kernel starts 5 ms after its launch, on an idle device: nobody knows what it waited for."""
    made = Kineto(gpu=True)
    for number in (1, 2):
        at = 10_000 * number
        made.step(number, at, 10_000)
        made.launched("k", call=(at, 5), kernel=(at + 10, 20), correlation=number)
        made.launched("k", call=(at + 40, 5), kernel=(at + 5_000, 20), correlation=10 + number)
    assert bounds(on_device(made)) is None


def test_a_step_that_does_not_exist() -> None:
    with pytest.raises(TraceError, match="no complete step 9"):
        replayed(launch_bound(), 9)
    with pytest.raises(TraceError, match="do not follow"):
        replayed(launch_bound(), (1, 3))


def test_the_questions_name_what_is_there() -> None:
    asked = {each.name for each in scenarios(on_device(communicating()))}
    assert {"communication", "host", "launch", "family:gemm", "family:optimizer"} <= asked
    assert "memory" not in asked
    assert isinstance(on_device(communicating()), Replay)


def test_operators_inside_the_loader_are_the_loaders_and_freed_once() -> None:
    """Steps of 500 us: 300 of loader with an operator of 250 inside, 100 of another, its kernel.

    Without operators 100 us go, without the loader 300: together 400, and never 250 twice.
    """
    made = Kineto(gpu=True)
    for number in (1, 2, 3, 4):
        at = 500 * number
        made.step(number, at, 500)
        made.loader(at, 300)
        made.op("aten::stack", at + 20, 250)
        made.op("aten::mm", at + 300, 110)
        made.launched("gemm", call=(at + 400, 10), kernel=(at + 412, 60), correlation=number)
    found = on_device(made)
    assert saving_us(found, "host_operators") == 100
    assert saving_us(found, "input") == 300


def test_over_many_steps_operators_save_more_than_the_path_of_one_step_shows() -> None:
    """Steps of 100 us: one operator whose call at 90 to 94 starts a kernel from 96 to 136.

    A step's path goes from the last completion at 36 on: 54 us of operator, 4 of call, 2 of lag,
    40 of kernel. Without operators the device sets the pace with 40 us a step: 60 are saved, since
    the 36 us of operator beside the last kernel are gone as well. That is no double count.
    """
    made = Kineto(gpu=True)
    for number in (1, 2, 3, 4, 5):
        at = 100 * number
        made.step(number, at, 100)
        made.op("aten::mm", at, 100)
        made.launched("gemm", call=(at + 90, 4), kernel=(at + 96, 40), correlation=number)
    path = path_us(on_device(made, 3))
    assert path == {"host_operators": 54, "compute": 40, "launch": 6}
    assert saving_us(on_device(made), "host_operators") == 60
