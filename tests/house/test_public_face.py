"""The names that a user types are the agreed ones, and each exists."""

import workbench as wb

AGREED = {
    "Record",
    "Run",
    "Settings",
    "Workload",
    "capture",
    "compare",
    "open",
    "panel",
    "profile",
    "report",
    "runs",
    "tune",
    "verify",
}


def test_the_face_offers_agreed_names_and_no_more():
    assert set(wb.__all__) <= AGREED


def test_every_offered_name_exists_and_has_a_docstring():
    for name in wb.__all__:
        first_line = (getattr(wb, name).__doc__ or "").partition("\n")[0]
        assert first_line.endswith("."), name


def test_the_offered_names_are_what_a_notebook_completes():
    assert set(wb.__all__) <= set(dir(wb))


def test_no_room_hides_a_function_of_the_face():
    rooms = {"profiling", "reporting", "recording", "run", "store", "trace", "widgets"}

    assert rooms.isdisjoint(wb.__all__)
