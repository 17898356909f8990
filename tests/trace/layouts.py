"""Writes one document in the layouts that traces are found in."""

import json
from collections.abc import Callable
from typing import Any

Document = dict[str, Any]
Layout = Callable[[Document], bytes]


def kineto(document: Document) -> bytes:
    """As libkineto writes: keys of an event on lines of their own, args on one line."""
    header = {key: value for key, value in document.items() if key != "traceEvents"}
    text = "{\n" + "".join(f'  "{k}": {json.dumps(v)},\n' for k, v in header.items())
    events = ",".join(_kineto_event(event) for event in document["traceEvents"])
    return f'{text}  "traceEvents": [{events}\n  ],\n  "traceName": "t.json"\n}}\n'.encode()


def _kineto_event(event: dict[str, Any]) -> str:
    lines = [f'    "{k}": {json.dumps(v)}' for k, v in event.items() if k != "args"]
    text = "\n  {\n" + ",\n".join(lines)
    if "args" in event:
        inner = ", ".join(f'"{k}": {json.dumps(v)}' for k, v in event["args"].items())
        text += f'\n    ,\n    "args": {{\n      {inner}\n    }}'
    return text + "\n  }"


def compact(document: Document) -> bytes:
    """Without any white space, and as UTF-8 rather than escapes."""
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()


def one_line(document: Document) -> bytes:
    """As ``json.dump`` writes."""
    return json.dumps(document).encode()


def four_spaces(document: Document) -> bytes:
    """As ``json.dump(indent=4)`` writes."""
    return json.dumps(document, indent=4).encode()


def bare_array(document: Document) -> bytes:
    """Only the list of events."""
    return json.dumps(document["traceEvents"], indent=0).encode()


def events_first(document: Document) -> bytes:
    """The header after the events."""
    rest = {key: value for key, value in document.items() if key != "traceEvents"}
    return json.dumps({"traceEvents": document["traceEvents"], **rest}, indent=2).encode()


def carriage_returns(document: Document) -> bytes:
    """Lines as Windows ends them."""
    return four_spaces(document).replace(b"\n", b"\r\n")


ALL = (kineto, compact, one_line, four_spaces, bare_array, events_first, carriage_returns)
