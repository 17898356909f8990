"""Secrets and private places stay out of reports, wherever they were planted."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.kineto import Kineto
from workbench.errors import CellError
from workbench.reporting import report
from workbench.reporting.privacy import HIDDEN, PROJECT, guarded, is_secret_name

ENV_SECRET = "hunter2-from-the-environment"
PARAMETER_SECRET = "correct-horse-battery"
KEY = "ghp_" + "a1B2" * 9
PLACE = "customer-acme"
HOME, MAC_HOME = "/home", "/Users"


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("GITHUB_TOKEN", True),
        ("DB_PASSWORD", True),
        ("AWS_SECRET_ACCESS_KEY", True),
        ("api_key", True),
        ("DATABASE_URL", True),
        ("HOME", False),
        ("KEYBOARD", False),
        ("MONKEY", False),
        ("batch_size", False),
    ],
)
def test_variables_that_hold_secrets_are_known_by_name(name: str, secret: bool):
    assert is_secret_name(name) is secret


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"used {KEY} here", f"used {HIDDEN} here"),
        ("AKIAABCDEFGHIJKLMNOP", HIDDEN),
        ("git clone https://me:pw123456@host/x", f"git clone https://{HIDDEN}@host/x"),
        ("train.py --password=abcdefgh", f"train.py --password={HIDDEN}"),
        (f"{HOME}/ada/loop/train.py(3): step", "~/loop/train.py(3): step"),
        (f"{MAC_HOME}/ada/x.py", "~/x.py"),
        (
            "/opt/env/lib/python3.11/site-packages/torch/nn/modules/module.py(1): _call_impl",
            "torch/nn/modules/module.py(1): _call_impl",
        ),
        ("aten::mm", "aten::mm"),
        ("12 ms/step, 3/4 of it", "12 ms/step, 3/4 of it"),
    ],
)
def test_words_that_look_like_keys_and_places(text: str, shown: str):
    assert guarded(text) == shown


def test_paths_are_told_from_the_project_and_asked_for_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(PROJECT, str(tmp_path))
    assert guarded(f"{tmp_path}/models/net.py(7)") == "models/net.py(7)"
    assert guarded(f"in {tmp_path}") == "in ."
    assert guarded(f"{tmp_path}/net.py", paths=False) == f"{tmp_path}/net.py"


def test_a_short_value_is_no_word_to_hide(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("USE_TOKEN", "1")
    assert guarded("1 of 10 steps") == "1 of 10 steps"


def planted(folder: Path) -> Path:
    """A trace with a secret in a stack, in an argument and in a name of a range."""
    made = Kineto(gpu=True)
    for number in range(6):
        at = number * 1000.0
        made.step(number, at, 1000)
        stack = f"{folder}/train.py(3): step;{folder}/net.py(4): forward {ENV_SECRET}"
        made.op("aten::mm", at + 100, 60, **{"Call stack": stack})
        values = ["", f"token={KEY}"]
        made.op("aten::load", at + 170, 20, **{"Concrete Inputs": values})
        made.range(f"open {folder}/data/{PLACE}.bin", at + 200, 30)
        made.python(f"{folder}/train.py(9): main {ENV_SECRET}", at, 900, ident=number, parent=None)
        made.launched("sgemm", call=(at + 110, 10), kernel=(at + 300, 500), correlation=number + 1)
    return made.write(folder / "trace.json")


def told(place: Path) -> dict[str, str]:
    """All that a report wrote, by name of the file."""
    return {path.name: path.read_text(encoding="utf-8") for path in place.iterdir()}


@pytest.mark.slow
def test_nothing_planted_is_in_any_file_of_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    project = tmp_path / PLACE
    project.mkdir()
    trace = planted(project)
    monkeypatch.chdir(project)
    monkeypatch.setenv("ACME_API_TOKEN", ENV_SECRET)
    out = tmp_path / "out"
    report(trace, out.with_suffix(".html"), files=out)
    for name, text in {**told(out), "html": out.with_suffix(".html").read_text()}.items():
        for word in (ENV_SECRET, KEY, str(project), str(tmp_path)):
            assert word not in text, f"{word} is in {name}"
    assert f"{HIDDEN}" in (out / "report.ipynb").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_notebook_of_ones_own_that_fails_tells_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Parameter, environment and exception text; in the kept notebook and in the error."""
    monkeypatch.setenv("ACME_API_TOKEN", ENV_SECRET)
    cells = [
        ("db_password = None\nrows = 1", ["parameters"]),
        ("import os\nprint(db_password, rows, os.environ['ACME_API_TOKEN'], os.getcwd())", []),
        ("raise RuntimeError('cannot log in with ' + db_password)", []),
    ]
    own = notebook(tmp_path / "own.ipynb", cells)
    with pytest.raises(CellError) as failed:
        report(own, tmp_path / "r.html", parameters={"db_password": PARAMETER_SECRET, "rows": 7})
    kept = (tmp_path / "r.failed.ipynb").read_text(encoding="utf-8")
    for text in (kept, str(failed.value), failed.value.shown):
        assert PARAMETER_SECRET not in text
        assert ENV_SECRET not in text
    assert f"{HIDDEN} 7 {HIDDEN}" in kept
    assert f"cannot log in with {HIDDEN}" in failed.value.shown
    assert "raise RuntimeError" in failed.value.shown


@pytest.mark.slow
def test_places_are_shown_when_asked(tmp_path: Path):
    own = notebook(tmp_path / "own.ipynb", [("import os\nprint(os.getcwd())", [])])
    page = report(own, tmp_path / "r.html", hide_places=False).read_text(encoding="utf-8")
    assert str(tmp_path) in page
    hidden = report(own, tmp_path / "r.html").read_text(encoding="utf-8")
    assert str(tmp_path) not in hidden


def notebook(path: Path, cells: list[tuple[str, list[str]]]) -> Path:
    made: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "id": f"c{number}",
            "metadata": {"tags": tags},
            "execution_count": None,
            "outputs": [],
            "source": source,
        }
        for number, (source, tags) in enumerate(cells)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    document = {"cells": made, "metadata": {"kernelspec": kernel}}
    path.write_text(json.dumps({**document, "nbformat": 4, "nbformat_minor": 5}))
    return path
