"""One colour per category; what reads on white and on black, and what cannot."""

import json

import pytest

from workbench.analysis.causes import CAUSES
from workbench.analysis.stalls.parts import PARTS
from workbench.figures import palette

WHITE, DARK = "#FFFFFF", "#111111"

LAW = {
    "compute": "#0072B2",
    "communication": "#D55E00",
    "memory": "#CC79A7",
    "input": "#E69F00",
    "host_operators": "#009E73",
    "host_python": "#8A8A00",
    "synchronization": "#56B4E9",
    "allocation": "#8C564B",
    "compilation": "#6B6ECF",
    "garbage_collection": "#E377C2",
    "launch": "#BDBDBD",
}
"""The colours that the product's visual language fixes."""

ALL = palette.CATEGORIES | {f"stall: {name}": each for name, each in palette.STALLS.items()}

CPU_PARTS = "input communication optimizer backward forward other_operators host_python host_other"
DEVICE_PARTS = "compute exposed_communication_wait exposed_communication_transfer exposed_memory"


def test_fixed_colours_are_as_the_visual_language_says():
    assert {name: palette.CATEGORIES[name].colour for name in LAW} == LAW


@pytest.mark.parametrize("name", [*CAUSES, *CPU_PARTS.split(), *DEVICE_PARTS.split()])
def test_every_part_of_a_breakdown_has_its_own_entry(name: str):
    assert name in palette.CATEGORIES


def test_every_part_of_the_wait_for_input_has_its_own_look():
    assert tuple(palette.STALLS) == PARTS
    looks = {(each.colour, each.hatched) for each in palette.STALLS.values()}
    assert len(looks) == len(PARTS)


def test_every_cause_of_idle_is_drawn_as_idle_and_says_what_is_waited_for():
    for cause in CAUSES:
        assert palette.CATEGORIES[cause].idle
        assert palette.CATEGORIES[cause].waits


@pytest.mark.parametrize("name", ALL)
def test_marks_stand_out_from_a_dark_page(name: str):
    assert palette.contrast(ALL[name].colour, DARK) >= 3


@pytest.mark.parametrize("name", ALL)
def test_marks_stand_out_from_a_white_page_but_for_those_listed(name: str):
    enough = palette.contrast(ALL[name].colour, WHITE) >= 3
    assert enough == (name not in palette.LOW_ON_WHITE)


@pytest.mark.parametrize("name", ALL)
def test_ink_on_a_mark_is_legible(name: str):
    colour = ALL[name].colour
    assert palette.contrast(palette.ink_on(colour), colour) >= 4.5


def test_no_grey_is_better_than_ours_on_both_pages_at_once():
    greys = [f"#{v:02X}{v:02X}{v:02X}" for v in range(256)]
    worst = {g: min(palette.contrast(g, WHITE), palette.contrast(g, DARK)) for g in greys}
    assert max(worst.values()) < 4.5
    assert worst[palette.INK] == max(worst.values())


def test_tooltip_is_legible():
    assert palette.contrast(palette.TOOLTIP_TEXT, palette.TOOLTIP) >= 7


def test_contrast_of_black_and_white_is_21():
    assert palette.contrast("#000000", WHITE) == pytest.approx(21)


def test_unlisted_category_is_shown_as_unknown_under_its_own_name():
    found = palette.category("new_cause")
    assert (found.label, found.colour) == ("new cause", palette.category("unknown").colour)
    assert found.hatched


def test_javascript_gets_the_same_table():
    table = json.loads(json.dumps(palette.to_json()))
    assert table["input"] == {
        "label": "input",
        "colour": "#E69F00",
        "hatched": False,
        "idle": True,
    }
    assert set(table) == set(palette.CATEGORIES)
