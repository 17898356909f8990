"""What a Run may be called on disk."""

import pytest

from workbench.store.names import safe_name


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
    ],
)
def test_any_text_becomes_one_safe_folder_name(text: str, name: str) -> None:
    assert safe_name(text) == name
