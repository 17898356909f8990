"""What a Run may be called on disk."""

from typing import Any

import pytest

from workbench.errors import RunError
from workbench.store.names import as_folder, safe_name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("resnet18", "resnet18"),
        ("precision=bf16, workers=4", "precision=bf16--workers=4"),
        ("../../etc/passwd", "etc-passwd"),
        ("/root", "root"),
        ("..", "run"),
        ("", "run"),
        (".hidden", "hidden"),
        ("C:\\temp", "C--temp"),
        ('a"b\n\0', "a-b"),
        ("Größe", "Größe"),
        ("x" * 300, "x" * 80),
        ("漢" * 300, "漢" * 36),  # three bytes each, and a name has room for 110
    ],
)
def test_any_text_becomes_one_safe_folder_name(text: str, name: str) -> None:
    assert safe_name(text) == name


@pytest.mark.parametrize("folder", [5, b"runs", ["runs"], "a\0b"])
def test_what_is_no_path_is_refused(folder: Any) -> None:
    with pytest.raises(RunError, match=r"folder=.* is not a path.*'runs'"):
        as_folder(folder, "runs")
