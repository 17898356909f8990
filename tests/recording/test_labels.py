"""Different names stay different, whatever has to be altered."""

from workbench.recording.labels import Labels


def test_a_plain_name_is_left_alone() -> None:
    labels = Labels()
    assert labels.safe("decode [jpeg] 1/2") == "decode [jpeg] 1/2"
    assert labels.real == {}


def test_an_altered_name_is_remembered_and_given_again() -> None:
    labels = Labels()
    assert labels.safe('a"b') == "a_b"
    assert labels.safe('a"b') == "a_b"
    assert labels.real == {"a_b": 'a"b'}


def test_names_that_would_collide_get_a_number() -> None:
    labels = Labels()
    assert [labels.safe(name) for name in ("a_b", 'a"b', "aäb", "")] == [
        "a_b",
        "a_b~2",
        "a_b~3",
        "_",
    ]
    assert labels.real == {"a_b~2": 'a"b', "a_b~3": "aäb", "_": ""}
