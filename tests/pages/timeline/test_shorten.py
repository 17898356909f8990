"""A large scene in a small notebook: what is drawn together, and what never is."""

import numpy as np

from tests.pages.timeline import made
from workbench.pages.timeline.encode import pack
from workbench.pages.timeline.labels import Labels
from workbench.pages.timeline.scene import track
from workbench.pages.timeline.shorten import merged, shorten


def one_row(spans: list[tuple[int, int, str]]):
    labels = Labels()
    start = np.array([a for a, _, _ in spans], np.int64)
    end = np.array([b for _, b, _ in spans], np.int64)
    code = np.array([labels.of(name, name) for _, _, name in spans], np.int32)
    row = track("stream", "s", "GPU 0", 0, start, end - start, code, row=np.arange(len(spans)))
    category = np.array([code for _, code in labels.pairs()])
    short = merged(row, 100, category, lambda kind: labels.of("several", "compute"))
    pairs = labels.pairs()
    return [
        (int(s), int(s + d), pairs[code][0], int(n), int(i))
        for s, d, code, n, i in zip(
            short.start, short.dur, short.label,
            np.ones(len(short)) if short.count is None else short.count,
            np.zeros(len(short)) if short.idle is None else short.idle,
            strict=True,
        )
    ]  # fmt: skip


def test_short_neighbours_become_one_that_tells_how_many_and_how_much_is_idle():
    # 50 + 40 + 30 ns of work in 0 to 160: 40 idle.
    spans = [(0, 50, "compute"), (60, 100, "compute"), (130, 160, "compute")]
    assert one_row(spans) == [(0, 160, "several", 3, 40)]


def test_a_gap_of_the_limit_a_long_event_and_another_colour_stay():
    spans = [
        (0, 50, "compute"),
        (150, 200, "compute"),  # 100 ns behind: a gap of the limit is never drawn over
        (200, 300, "compute"),  # 100 ns long: stays itself
        (300, 320, "memory"),  # another colour
        (320, 340, "compute"),
    ]
    assert [each[:2] for each in one_row(spans)] == [each[:2] for each in spans]


def test_a_scene_that_fits_is_left_alone():
    scene = made.busy_scene(1000)
    short = shorten(scene, 1_000_000)
    assert short.limit_ns == 0
    assert short.scene is scene


def test_a_large_scene_is_cut_to_size_says_so_and_keeps_all_work():
    scene = made.busy_scene(60_000)
    short = shorten(scene, 60_000)
    assert len(short.data) <= 60_000
    assert short.limit_ns > 0
    assert "60\u2009000 events" in short.scene.notes[0]
    for before, after in zip(scene.tracks, short.scene.tracks, strict=True):
        assert after.count is not None
        assert after.idle is not None
        assert int(after.count.sum()) == len(before)
        assert int(after.dur.sum() - after.idle.sum()) == int(before.dur.sum())
        # The pauses of 200 µs that the stream was made with are all still there.
    gaps = [np.diff(np.column_stack((t.start, t.start + t.dur)).ravel())[1::2] for t in
            (scene.tracks[0], short.scene.tracks[0])]  # fmt: skip
    assert (gaps[0] >= 200_000).sum() == (gaps[1] >= 200_000).sum() > 5


def test_detail_fills_the_room_that_there_is():
    scene = made.busy_scene(60_000)
    small, large = shorten(scene, 40_000), shorten(scene, 80_000)
    assert small.limit_ns > large.limit_ns
    assert len(small.data) > 40_000 * 0.5
    assert len(large.data) > len(small.data)


def test_shapes_go_before_events_do():
    labels = Labels()
    rng = np.random.default_rng(1)
    code = np.full(4000, labels.of("aten::mm", "host_operators"), np.int32)
    start = np.arange(4000) * 100
    shapes = rng.integers(0, 4000, 4000).astype(np.int32)
    labels._shapes = {f"[[{n},{n * 7}]]": n for n in range(4000)}
    row = track("thread", "t", "Host", 0, start, np.full(4000, 50), code, shape=shapes)
    scene = made.scene_of(row, labels=labels)
    whole = len(pack(scene))
    short = shorten(scene, whole - 1)
    assert len(short.scene) == 4000
    assert "Shapes" in short.scene.notes[-1]
