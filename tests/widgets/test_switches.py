"""The switches without a browser: messages in, ``.settings`` out."""

from dataclasses import fields
from typing import Any

import pytest

from workbench.errors import SettingError
from workbench.settings import Settings
from workbench.widgets import Switches
from workbench.widgets.controls import controls


def page_sends(switches: Switches, **values: Any) -> None:
    """What arrives when a page's form shows these values."""
    content = {"kind": "set", "values": values, "ticket": "t1"}
    switches._handle_custom_msg(content, [])


def test_every_setting_has_a_control_with_its_own_words():
    drawn = {control.name: control for control in controls()}

    assert list(drawn) == [field.name for field in fields(Settings)]
    assert all(control.help for control in drawn.values())


def test_a_control_offers_what_the_record_accepts():
    drawn = {control.name: control for control in controls()}

    for precision in drawn["precision"].choices:
        assert Settings(precision=precision).precision == precision  # type: ignore[arg-type]
    assert drawn["workers"].kind == "number"
    assert drawn["compile"].choices == ("off", "default", "reduce-overhead", "max-autotune")
    assert drawn["clip_norm"].kind == "decimal"
    assert drawn["checkpointing"].kind == "names"
    assert drawn["cpu_affinity"].kind == "numbers"


def test_untouched_switches_leave_everything_as_it_is():
    assert Switches().settings == Settings()


def test_what_the_page_shows_is_the_value_for_the_next_cell():
    switches = Switches(Settings(workers=4))
    page_sends(switches, workers=2, precision="bf16", compile=None)

    assert switches.settings == Settings(workers=2, precision="bf16")


def test_the_answer_carries_the_ticket_of_the_message():
    switches = Switches()
    page_sends(switches, workers=2)

    assert switches._state["ticket"] == "t1"
    assert switches._state["summary"] == "workers=2"


def test_an_invalid_combination_is_shown_and_refused_until_it_is_mended():
    switches = Switches(Settings(workers=4))
    page_sends(switches, workers=0, prefetch_factor=2)

    assert "prefetch_factor needs worker processes" in switches._state["error"]
    with pytest.raises(SettingError, match="prefetch_factor needs worker processes"):
        _ = switches.settings

    page_sends(switches, workers=1, prefetch_factor=2)
    assert switches._state["error"] is None
    assert switches.settings == Settings(workers=1, prefetch_factor=2)


@pytest.mark.parametrize(
    "values",
    [{"workers": 1.5}, {"workers": "not a number"}, {"colour": "red"}, {"precision": ["bf16"]}],
)
def test_a_value_that_no_setting_accepts_never_crashes_the_widget(values: dict[str, Any]):
    switches = Switches()
    page_sends(switches, **values)

    assert next(iter(values)) in switches._state["error"]


@pytest.mark.parametrize("content", [None, {}, {"kind": "set", "values": 3}, {"kind": "other"}])
def test_a_message_that_is_not_ours_changes_nothing(content: Any):
    switches = Switches(Settings(workers=4))
    switches._handle_custom_msg(content, [])

    assert switches.settings == Settings(workers=4)


def test_setting_the_value_from_python_shows_it():
    switches = Switches()
    switches.settings = Settings(channels_last=True)

    assert switches._state["values"] == {"channels_last": True}


def test_as_yours_tells_the_value_that_the_work_has():
    switches = Switches(effective={"batch_size": 32, "pin_memory": False, "workers": None})

    assert switches._state["effective"] == {"batch_size": "32", "pin_memory": "off"}


def test_without_a_kernel_a_table_says_the_same():
    switches = Switches(Settings(workers=4, compile=True), effective={"batch_size": "<32>"})
    data, _ = switches._repr_mimebundle_()

    assert data["text/plain"] == "Switches(compile=True, workers=4)"
    assert "<td>4</td>" in data["text/html"]
    assert "<td>on</td>" in data["text/html"]
    assert "&lt;32&gt;" in data["text/html"]
    assert "<script" not in data["text/html"]
