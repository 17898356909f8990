"""What a search shows: each trial beside what it was measured against."""

from workbench.pages.tuning import TuningView, tuning_html, tuning_text


def row(setting: str, time_ms: float, without_ms: float | None, gain: float | None) -> dict:
    time_ns, without_ns = time_ms * 1e6, None if without_ms is None else without_ms * 1e6
    return {
        **{"setting": setting, "origin": "offer", "time_ns": time_ns, "without_ns": without_ns},
        **{"low_ns": None, "high_ns": None, "gain": gain, "kept": False, "reason": "because"},
        **{"memory_bytes": 10, "device_bytes": None, "parity": None, "decision": "reverted"},
    }


VIEW = TuningView(
    sentence="batch 128 is kept.",
    rows=[row("as it is", 40, None, None), row("optimizer=fused", 15, 16, 0.07)],
    per="step",
    lines=["it was tried"],
    code="pass",
    place="runs/tuning",
)


def test_a_trial_stands_beside_the_best_so_far_that_it_took_turns_with() -> None:
    """15 ms against 16, not against the 40 of the loop as it was: 7 % of neighbouring blocks."""
    line = next(each for each in tuning_text(VIEW).splitlines() if "fused" in each)
    assert line.split() == [
        "optimizer=fused",
        "15.0",
        "ms",
        "16.0",
        "ms",
        "7.0",
        "%",
        "10.0",
        "B",
        "reverted",
    ]
    assert "took turns with the best settings so far" in " ".join(tuning_text(VIEW).split())
    assert "without it" in tuning_html(VIEW)


def test_the_table_fits_a_terminal() -> None:
    assert max(map(len, tuning_text(VIEW).splitlines())) <= 80
