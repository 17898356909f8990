"""The finding that stands over a timeline: how much of it is spent waiting, and for what."""

import numpy as np

from workbench.pages.timeline.labels import KNOWN, NAMES
from workbench.pages.timeline.scene import Scene, Track
from workbench.units import share_text, time_text


def headline(scene: Scene) -> str:
    """One sentence; of what was recorded where there is neither a device nor a loop."""
    idle = [track for track in scene.tracks if track.kind == "idle"]
    if idle:
        return _devices(scene, idle)
    loops = [track for track in scene.tracks if track.kind == "loop"]
    if loops:
        return _loop(scene, loops)
    return f"Everything that was recorded: {time_text(scene.end - scene.start)}"


def _devices(scene: Scene, idle: list[Track]) -> str:
    whole = 0
    for gaps in idle:
        same = [t for t in scene.tracks if (t.rank, t.device) == (gaps.rank, gaps.device)]
        lanes = [t for t in same if t.kind in ("stream", "idle") and len(t)]
        whole += max(int((t.start + t.dur).max()) for t in lanes)
        whole -= min(int(t.start.min()) for t in lanes)
    times = _by_category(scene, idle)
    total = int(times.sum())
    who = idle[0].group if len(idle) == 1 else f"The mean of {len(idle)} devices"
    if not total or not whole:
        return f"{who} never idles in the recording"
    most = int(times.argmax())
    said = f"{who} idles {share_text(min(1.0, total / whole))} of the recording"
    why = f"waiting {KNOWN[NAMES[most]].waits}"
    if times[most] * 2 > total:
        return f"{said}, mostly {why}"
    return f"{said}; most of that, {share_text(times[most] / total)}, {why}"


def _loop(scene: Scene, loops: list[Track]) -> str:
    times = _by_category(scene, loops)
    most = int(times.argmax())
    share = share_text(times[most] / max(int(times.sum()), 1))
    who = "The loop" if len(loops) == 1 else f"The mean of {len(loops)} loops"
    return f"{who} spends {share} of its steps on {KNOWN[NAMES[most]].label}"


def _by_category(scene: Scene, tracks: list[Track]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    category = np.array([code for _, code in scene.labels.pairs()], np.int64)
    times = np.zeros(len(NAMES))
    for track in tracks:
        times += np.bincount(category[track.label], track.dur, len(NAMES))
    return times
