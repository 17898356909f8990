"""Which waits the replay knows: threads, blocking copies, events that the trace tells, clocks."""

from tests.analysis.replay.cases import on_device, path_us, saving_us
from tests.kineto import HOST, Kineto
from workbench.analysis.replay.scenario import faster_family, hidden

AUTOGRAD = 555


def training(*, handed: bool = True) -> Kineto:
    """Steps of 300 us: forward on the loop's thread, backward on another one, then other code.

    Each takes 100 us, and each kernel is done before the host comes to the next one.
    """
    made = Kineto(gpu=True)
    for number in (1, 2, 3, 4):
        at = 300 * number
        made.step(number, at, 300)
        made.op("aten::mm", at, 90, **{"Sequence number": number})
        made.launched("f", call=(at + 80, 5), kernel=(at + 90, 5), correlation=number)
        name = "autograd::engine::evaluate_function: MmBackward0" if handed else "aten::clone"
        args = {"Sequence number": number, "Fwd thread id": 1} if handed else {}
        made.op(name, at + 100, 100, tid=AUTOGRAD, **args)
        made.launched(
            "b", call=(at + 180, 5), kernel=(at + 190, 50), correlation=10 + number, tid=AUTOGRAD
        )
    return made


def test_backward_follows_forward_and_the_loop_follows_backward() -> None:
    """Operators free: 90 us of forward and 100 of backward, but not their two launches of 5 us."""
    assert saving_us(on_device(training()), "host_operators") == (90 - 5) + (100 - 5)


def test_another_thread_is_handed_its_work_by_the_loop() -> None:
    """A thread without backward nodes begins when the loop's thread has come so far.

    Forward free brings its launch forward; its own operator free shortens no step of 300 us, but
    the last kernel of the three ends sooner by its 80 us before the call.
    """
    made = training(handed=False)
    assert saving_us(on_device(made), "host_operators") == ((90 - 5) * 3 + 80) / 3


def copying(*, pageable: bool) -> Kineto:
    """Steps of 300 us: a kernel of 100 us, then a copy of 50 us to the host and 100 us of code."""
    kind = "Memcpy DtoH (Device -> Pageable)" if pageable else "Memcpy DtoH (Device -> Pinned)"
    made = Kineto(gpu=True)
    for number in (1, 2, 3, 4):
        at = 300 * number
        made.step(number, at, 300)
        made.launched("gemm", call=(at, 10), kernel=(at + 20, 100), correlation=number)
        length = 160 if pageable else 10
        made.runtime("cudaMemcpyAsync", at + 20, length, correlation=10 + number)
        made.kernel(kind, at + 120, 50, correlation=10 + number, cat="gpu_memcpy")
    return made


def test_a_blocking_copy_holds_the_host_until_it_is_done() -> None:
    """A faster gemm or a faster copy lets the host go on sooner."""
    replay = on_device(copying(pageable=True))
    assert saving_us(replay, faster_family("gemm")) == 50
    assert saving_us(replay, faster_family("copy")) == 25


def test_a_copy_that_does_not_block_holds_nobody() -> None:
    """The host alone needs 300 us; only the last copy of all ends sooner."""
    replay = on_device(copying(pageable=False))
    assert saving_us(replay, faster_family("gemm")) == 50 / 3


def test_a_blocking_copy_gone_lets_the_host_run_ahead() -> None:
    """The host needs 10 + 10 us before and 120 behind the copy, the device 150 a step."""
    assert saving_us(on_device(copying(pageable=True)), "synchronization") == 300 - 150


def told(*, event: int) -> Kineto:
    """Two kernels on stream 7, and an event after the first or the second of them.

    Stream 20 waits for it, and its kernel starts when the second one ends.
    """
    made = Kineto(gpu=True)
    for number in (1, 2, 3, 4):
        host, at = 100 * number, 2000 + 400 * number
        made.step(number, host, 100)
        made.launched("gemm", call=(host, 5), kernel=(at, 100), correlation=number)
        made.runtime("cudaEventRecord", host + 10, 1, correlation=100 + number)
        made.launched(
            "softmax", call=(host + 15, 5), kernel=(at + 100, 60), correlation=10 + number
        )
        made.runtime("cudaEventRecord", host + 25, 1, correlation=200 + number)
        made.runtime("cudaStreamWaitEvent", host + 30, 1, correlation=300 + number)
        made.kernel(
            "Stream Wait Event",
            at + 100,
            0.1,
            correlation=300 + number,
            stream=20,
            cat="cuda_sync",
            wait_on_stream=7,
            wait_on_cuda_event_record_corr_id=event * 100 + number,
            wait_on_cuda_event_id=5,
        )
        kernel = (at + 160, 240)
        made.launched(
            "flash_fwd", call=(host + 40, 5), kernel=kernel, correlation=20 + number, stream=20
        )
    return made


def test_a_recorded_wait_is_taken_at_its_word() -> None:
    """The event was recorded after softmax: made faster, it lets attention start 30 us sooner."""
    assert path_us(on_device(told(event=2), 3))["compute"] == 400
    assert saving_us(on_device(told(event=2), 3), faster_family("softmax")) == 30


def test_a_recorded_wait_for_something_earlier_does_not_follow_the_later_work() -> None:
    """The event was recorded before softmax was launched: attention did not wait for it."""
    assert saving_us(on_device(told(event=1), 3), faster_family("softmax")) == 0


def test_a_clock_that_is_behind_changes_nothing() -> None:
    """All device times 30 us early: the offset puts them back, and the step is as long."""
    right, early = copying(pageable=False), copying(pageable=False)
    for event in early.events:
        if event["pid"] != HOST:
            event["ts"] -= 30
    one, other = on_device(right), on_device(early)
    assert one.measured == other.measured
    assert saving_us(one, faster_family("gemm")) == saving_us(other, faster_family("gemm"))


def test_overlap_on_one_stream_keeps_its_share() -> None:
    """A programmatic launch starts 10 us before the kernel of 100 us ahead of it ends.

    That kernel twice as fast: 45 us until the next one starts, 5 beside it.
    """
    made = Kineto(gpu=True)
    for number in (1, 2, 3, 4):
        host, at = 20 * number, 1000 + 190 * number
        made.step(number, host, 20)
        made.launched("gemm", call=(host, 5), kernel=(at, 100), correlation=number)
        made.runtime("cudaLaunchKernelExC", host + 6, 5, correlation=10 + number)
        made.kernel("softmax", at + 90, 100, correlation=10 + number)
    assert saving_us(on_device(made), faster_family("gemm")) == 45


def test_hidden_copies_still_have_to_fit() -> None:
    """Copies of 50 us a step beside 100 us of gemm on the same stream: 100 are left of 150."""
    made = Kineto(gpu=True)
    for number in (1, 2, 3, 4):
        host, at = 20 * number, 1000 + 150 * number
        made.step(number, host, 20)
        made.runtime("cudaMemcpyAsync", host, 5, correlation=number)
        kind = "Memcpy HtoD (Pinned -> Device)"
        made.kernel(kind, at, 50, correlation=number, cat="gpu_memcpy")
        made.launched("gemm", call=(host + 6, 5), kernel=(at + 50, 100), correlation=10 + number)
    assert saving_us(on_device(made), hidden("memory")) == 50
