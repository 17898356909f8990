"""Orders to a process in a revision's folder, and what is left of it: nothing."""

import time
from pathlib import Path

import psutil
import pytest

from workbench.errors import GateError
from workbench.gate import talking

CHILD = (
    "import json, os, subprocess, sys\n"
    "c = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], "
    "start_new_session=True)\n"
    "for line in sys.stdin:\n"
    "    print(json.dumps({'child': c.pid, 'at': os.getcwd(), **json.loads(line)}), flush=True)\n"
    "import time; time.sleep(600)\n"
)


def runs(number: int) -> bool:
    try:
        return psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_side_is_asked_where_it_stands_and_ends_with_what_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its child is in a group of its own, and it does not end by itself when its orders do."""
    monkeypatch.setattr(talking, "START", CHILD.replace("{", "{{").replace("}", "}}"))
    own = psutil.Process()
    open_before = own.num_fds()
    with talking.Talk(tmp_path, tmp_path, name="base", until=time.monotonic() + 60) as talk:
        answer = talk.ask("block", steps=3)
        assert runs(answer["child"])
    assert answer["at"] == str(tmp_path.resolve())
    assert (answer["do"], answer["steps"]) == ("block", 3)
    assert not runs(answer["child"])
    assert own.num_fds() <= open_before


def test_a_side_that_ends_says_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(talking, "START", "import sys; sys.exit('no such thing')")
    talk = talking.Talk(tmp_path, tmp_path, name="head", until=time.monotonic() + 60)
    with talk, pytest.raises(GateError, match=r"head: its process ended at 'load'(.|\n)*no such"):
        talk.ask("load", workload="a:b")
