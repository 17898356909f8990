"""The still pictures of the panel say no number that is cut."""

import re

import pytest

from workbench.widgets.panel.drawing import LETTER, WIDTH, parts_picture


@pytest.mark.parametrize("share", [0.03, 0.06, 0.14, 0.16, 0.2, 0.5])
def test_a_text_that_has_no_room_in_its_piece_is_left_out(share: float):
    """Of 720 pixels 14 % are 101: "other host code 14 %" of 20 letters needs 144."""
    drawn = parts_picture({"input_ns": 1 - share, "other_ns": share})
    pieces = re.findall(
        r'<rect x="[\d.]+" y="2" width="([\d.]+)"[^>]*/>(<text[^>]*>([^<]*))?', drawn
    )
    assert sum(float(width) for width, _, _ in pieces) == pytest.approx(WIDTH, abs=0.2)
    for width, _, text in pieces:
        assert LETTER * len(text) <= float(width)
    assert f"other host code {share * 100:.0f}" in drawn or share < 0.1, "the title has them all"
