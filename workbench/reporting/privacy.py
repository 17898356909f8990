"""What a report does not tell unless asked: secrets, and where things lie on this machine.

Reports leave the machine: they hang on pull requests and lie in the artifacts of CI. Secrets are
the values of variables whose names say so, and words that look like keys of known services. Paths
are told from the project, from the packages or from the home folder.
"""

import html
import json
import os
import re
import site
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.run.run import Run
    from workbench.trace.table import Trace

HIDDEN = "•••"
PROJECT = "WORKBENCH_REPORT_PROJECT"
"""The variable that tells a kernel from where paths are told."""
LEAST_LETTERS = 6
"""A shorter value of a secret variable, such as 1 or true, stands in many words by chance."""

_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASS(WORD|WD|PHRASE)?$|PASSWORD|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY"
    r"|(^|_)KEY$|(^|_)AUTH$|COOKIE|DSN$|DATABASE_URL|CONNECTION_STRING",
    re.IGNORECASE,
)
_KEYS = re.compile(
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[\w-]{16,}"
    r"|\bhf_[A-Za-z0-9]{20,}|\bsk-[A-Za-z0-9_-]{20,}|\bxox[abprs]-[\w-]{10,}"
    r"|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,}"
)
_IN_URL = re.compile(r"(?<=://)[^/\s:@\"'<>]+:[^/\s@\"'<>]+(?=@)")
_TOLD = re.compile(
    r"(?i)\b((?:api[_-]?key|access[_-]?key|secret|token|password|passwd)[\"']?\s*[=:]\s*[\"']?)"
    r"([^\s\"'<>&,;)]{6,})"
)
_PACKAGES = re.compile(r"(?<![\w.~-])(?:/[^\s\"'<>:|()]+)?/(?:site|dist)-packages/")
_HOMES = re.compile(r"(?<![\w.~-])(?:/home|/Users)/[^/\s\"'<>:,;)]+")
_TEMPORARY = re.compile(r"(?<![\w.~-])(?:/private)?/(?:var/)?(?:tmp|folders)/[^\s\"'<>:,;)]*/")


def is_secret_name(name: str) -> bool:
    """Whether a variable or parameter of this name holds what nobody should read."""
    return _SECRET_NAME.search(name) is not None


def guarded(text: str, *, secrets: tuple[str, ...] = (), paths: bool = True) -> str:
    """Text without secrets and, unless asked for, without places of this machine.

    Args:
        text: What is to be shown.
        secrets: More words to hide, beside those of the environment.
        paths: Whether places are told from the project.
    """
    return Guard(secrets=secrets, paths=paths)(text)


class Guard:
    """Hides the same words in many texts: what they are is found once."""

    def __init__(self, *, secrets: tuple[str, ...] = (), paths: bool = True) -> None:
        words = (*secrets, *secrets_in(os.environ))
        spelled = {text: None for word in words for text in _spellings(word)}
        self._words = sorted(spelled, key=len, reverse=True)
        self._places = tuple(_places()) if paths else None

    def __call__(self, text: str) -> str:
        """The text as it may be shown."""
        for word in self._words:
            text = text.replace(word, HIDDEN)
        text = _IN_URL.sub(HIDDEN, _KEYS.sub(HIDDEN, text))
        text = _TOLD.sub(lambda found: f"{found[1]}{HIDDEN}", text)
        if self._places is None or "/" not in text:
            return text
        for place, told in self._places:
            if place in text:
                text = text.replace(f"{place}/", told)
                text = re.sub(rf"{re.escape(place)}(?![\w-])", told.rstrip("/") or ".", text)
        text = _PACKAGES.sub("", text)
        return _TEMPORARY.sub("", _HOMES.sub("~", text))


def private(run: "Run") -> "Run":
    """The same Run, whose traces tell no secret and no place: names, stacks and arguments."""
    for rank in run.ranks:
        rank.read_through(guarded_trace)
    return run


def guarded_trace(trace: "Trace") -> "Trace":
    """A trace whose texts are guarded."""
    guard = Guard()
    return replace(
        trace,
        names=tuple(map(guard, trace.names)),
        stacks=tuple(map(guard, trace.stacks)),
        values=tuple(map(guard, trace.values)),
        lanes=tuple(
            replace(lane, process=guard(lane.process), thread=guard(lane.thread))
            for lane in trace.lanes
        ),
    )


def secrets_in(parameters: Mapping[str, object]) -> tuple[str, ...]:
    """Values of parameters whose names say that nobody should read them."""
    found = (str(value) for name, value in parameters.items() if is_secret_name(name))
    return tuple(value for value in found if len(value) >= LEAST_LETTERS)


def _spellings(word: str) -> tuple[str, ...]:
    """A word as it stands in text, in HTML and in JSON."""
    return word, html.escape(word), json.dumps(word)[1:-1]


def _places() -> Iterator[tuple[str, str]]:
    """Folders of this machine, longest first, and what stands in their place."""
    known = {tempfile.gettempdir(): "", sys.prefix: "", sys.base_prefix: ""}
    known |= dict.fromkeys((*site.getsitepackages(), site.getusersitepackages()), "")
    known[str(Path.home())] = "~/"
    if project := os.environ.get(PROJECT):
        known[project] = known[str(Path(project).resolve())] = ""
    short = {name for name in known if len(Path(name).parts) < 2 or name == "/usr"}
    for name in sorted(known.keys() - short, key=len, reverse=True):
        yield name, known[name]
