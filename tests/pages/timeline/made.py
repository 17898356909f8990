"""Scenes made by hand, small or large."""

import numpy as np

from workbench.pages.timeline.labels import Labels
from workbench.pages.timeline.scene import Counter, Scene, Track, track


def scene_of(*tracks: Track, labels: Labels, counters: tuple[Counter, ...] = ()) -> Scene:
    return Scene(
        title="by hand",
        tracks=tracks,
        counters=counters,
        labels=labels,
        start=min(int(each.start.min()) for each in tracks),
        end=max(int((each.start + each.dur).max()) for each in tracks),
        ranks=("",),
    )


def busy_scene(events: int, *, seed: int = 1) -> Scene:
    """A stream of short kernels with a few long pauses, and a thread that launched them."""
    rng = np.random.default_rng(seed)
    labels = Labels()
    codes = np.array([labels.of(f"kernel_{n}", "compute") for n in range(40)], np.int32)
    calls = np.array([labels.of("cudaLaunchKernel", "launch")], np.int32)
    half = events // 2
    pause = np.where(rng.random(half) < 0.001, 200_000, rng.integers(0, 900, half))
    dur = rng.integers(500, 9_000, half)
    start = np.cumsum(pause + dur) - dur
    row = np.arange(half)
    kernels = track(
        "stream", "stream 7", "GPU 0", 0, start, dur, codes[rng.integers(0, 40, half)],
        row=row + half, link=row, device=0,
    )  # fmt: skip
    call_start = np.maximum(start - 20_000, 0)
    call_dur = np.minimum(np.diff(call_start, append=call_start[-1] + 5_000), 4_000)
    launches = track(
        "thread", "python", "Host", 0, call_start, call_dur, np.repeat(calls, half), row=row
    )
    return scene_of(kernels, launches, labels=labels)
