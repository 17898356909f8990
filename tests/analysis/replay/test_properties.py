"""What holds for every loop: exact unchanged, never longer, together never less, never below busy.

Random loops are run by a tiny device of the test's own: calls return at once, kernels of a stream
follow each other, and a wait between streams or of the host is kept.
"""

from dataclasses import dataclass, field

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.analysis.replay.cases import on_device, path_us, replayed
from tests.kineto import Kineto
from workbench.analysis.intervals import total, union
from workbench.analysis.replay.answers import critical_path, scenarios
from workbench.analysis.replay.replay import Replay
from workbench.analysis.replay.scenario import NOTHING_CHANGED, faster_family, without_gap

KERNELS = {7: "gemm", 20: "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 24: "softmax"}
ACTION = st.tuples(
    st.sampled_from(
        ["launch", "operator", "code", "sync", "device_sync", "wait", "loader", "copy"]
    ),
    st.sampled_from(list(KERNELS)),
    st.integers(1, 60),
    st.integers(1, 90),
)


@dataclass
class Machine:
    """One host thread and a device with three streams; microseconds."""

    made: Kineto = field(default_factory=lambda: Kineto(gpu=True))
    now: float = 1000
    done: dict[int, float] = field(default_factory=lambda: dict.fromkeys(KERNELS, 0.0))
    number: int = 0

    def act(self, action: str, stream: int, host: int, device: int) -> None:
        self.number += 1
        begin = self.now
        if action == "launch":
            self.now += host
            start = max(self.now + 3, self.done[stream] + 1)
            self.done[stream] = start + device
            self.made.launched(
                KERNELS[stream],
                call=(begin, host),
                kernel=(start, device),
                correlation=self.number,
                stream=stream,
            )
        elif action in ("operator", "code", "loader"):
            self.now += host
            if action == "operator":
                self.made.op("aten::mm", begin, host)
            if action == "loader":
                self.made.loader(begin, host)
        elif action in ("sync", "device_sync"):
            until = max(self.done.values()) if action == "device_sync" else self.done[stream]
            self.now = max(begin + 1, until + 5)
            name = "cudaDeviceSynchronize" if action == "device_sync" else "cudaStreamSynchronize"
            self.made.runtime(name, begin, self.now - begin, correlation=self.number)
        elif action == "wait":
            self.made.runtime("cudaStreamWaitEvent", begin, 1, correlation=self.number)
            self.done[stream] = max(self.done.values())
            self.now += 2
        else:
            start = max(begin + 3, self.done[stream] + 1)
            self.done[stream] = start + device
            self.now = self.done[stream] + 4
            self.made.runtime("cudaMemcpyAsync", begin, self.now - begin, correlation=self.number)
            self.made.kernel(
                "Memcpy DtoH (Device -> Pageable)",
                start,
                device,
                correlation=self.number,
                stream=stream,
                cat="gpu_memcpy",
            )


def run(steps: list[list[tuple[str, int, int, int]]]) -> Kineto:
    """A loop of these steps, each beginning with a launch so that every step has work."""
    machine = Machine()
    for number, actions in enumerate(steps):
        begin = machine.now
        machine.act("launch", 7, 5, 20)
        for action in actions:
            machine.act(*action)
        machine.made.step(number, begin, machine.now - begin)
    return machine.made


def replay_of(made: Kineto) -> Replay:
    """The replay of a loop whose last step ends after the one before it."""
    assume(replayed(made) is not None)
    return on_device(made)


LOOPS = st.one_of(
    st.lists(st.lists(ACTION, max_size=8), min_size=2, max_size=4).map(run),
    st.lists(ACTION, max_size=10).map(lambda actions: run([actions] * 4)),
)


@settings(deadline=None, max_examples=60)
@given(LOOPS)
def test_unchanged_it_is_exact_and_its_path_has_no_hole(made: Kineto) -> None:
    replay = replay_of(made)
    assert replay.length(NOTHING_CHANGED) == replay.measured
    assert replay.saving(NOTHING_CHANGED) == 0
    assert sum(path_us(replay).values()) == replay.measured / 1000
    path = critical_path(replay)
    assert path.start[0] == replay.graph.span.start
    assert path.end[-1] == replay.graph.span.end


@settings(deadline=None, max_examples=25)
@given(LOOPS, st.integers(0, 3000), st.integers(1, 500))
def test_never_longer_and_two_together_never_save_less(
    made: Kineto, start: int, length: int
) -> None:
    replay = replay_of(made)
    asked = [*scenarios(replay), without_gap(start * 1000, (start + length) * 1000)]
    saved = [replay.saving(each) for each in asked]
    assert min(saved) >= 0
    assert max(saved) <= replay.measured
    for one, other in zip(range(len(asked)), range(1, len(asked)), strict=False):
        together = replay.saving(asked[one].also(asked[other]))
        assert together >= max(saved[one], saved[other]), (asked[one].name, asked[other].name)
    everything = asked[0]
    for each in asked[1:]:
        everything = everything.also(each)
    assert replay.saving(everything) >= max(saved)


@settings(deadline=None, max_examples=30)
@given(LOOPS)
def test_no_host_change_saves_the_work_of_a_stream(made: Kineto) -> None:
    """However free the host is, each stream still does its work of the steps one by one.

    What the host launched ahead may run beside the step before, since the host began.
    """
    replay = replay_of(made)
    work, span = replay.graph.work, replay.graph.span
    everything = next(each for each in scenarios(replay) if each.name == "host")
    for each in scenarios(replay):
        if each.causes:
            everything = everything.also(each)
    left = replay.measured - replay.saving(everything)
    for stream in np.unique(work.stream[replay.own]).tolist():
        mine = replay.own & (work.stream == stream)
        busy = total(union(work.start[mine], work.end[mine]))
        assert left >= busy - (span.start - span.host_start)


@settings(deadline=None, max_examples=15)
@given(LOOPS, st.sampled_from([1.0, 1.5, 2.0, 10.0]))
def test_faster_saves_more_the_faster(made: Kineto, times: float) -> None:
    replay = replay_of(made)
    less, more = (replay.saving(faster_family("gemm", each)) for each in (times, times + 1))
    assert less <= more
