"""Mends the text of single events where only one reading makes sense.

``mend`` takes one event that does not parse and gives texts to try, the least invasive first.
"""

import re
from collections.abc import Iterator

_STRING = r'"(?:[^"\\]|\\.)*"'
_TOKEN = re.compile(_STRING + r"|-?\b(?:NaN|Infinity|nan|inf)\b|,(?=\s*[}\]])", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f]")
_SURROGATE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
_BAD_ESCAPE = re.compile(r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|)', re.DOTALL)
_LINE = re.compile(
    r'^([ \t]*"(?:name|cat|pid|tid|id)"[ \t]*:[ \t]*")(.*)("[ \t]*,?[ \t]*\r?)$', re.M
)
_KEY_AHEAD = r'\s*,\s*"[^"\\\n]{1,64}"\s*:'
_VALUE_ENDS_IN_OBJECT = re.compile(rf"(?:{_KEY_AHEAD}|\s*\}})")
_VALUE_ENDS_IN_ARRAY = re.compile(r'\s*(?:\]|,\s*(?:["\[{]|-?\d|true|false|null))')
_KEY_ENDS = re.compile(r"\s*:")


def mend(event: bytes) -> Iterator[str]:
    """Readings of a damaged event, the least invasive first."""
    text = event.decode("utf-8", "replace")
    yield clean(text)
    yield clean(_quote_lines(text))
    yield clean(_quote_by_structure(text))


def clean(text: str) -> str:
    """Legal JSON where strings hold control characters, bad escapes or half surrogates.

    Outside of strings, commas before a closing bracket go away, and NaN and infinities are null.
    """
    return _TOKEN.sub(_clean_token, text)


def _clean_token(match: re.Match[str]) -> str:
    token = match.group()
    if token[0] == ",":
        return ""
    if token[0] != '"':
        return "null"
    token = _SURROGATE.sub(lambda m: "\\ufffd" if m.group(1) else m.group(), token)
    token = _BAD_ESCAPE.sub(lambda m: m.group() if m.group(1) else "\\\\", token)
    return _CONTROL.sub(lambda m: f"\\u{ord(m.group()):04x}", token)


def _quote_lines(text: str) -> str:
    """Quotes inside a value that has its line for itself, as Kineto writes names."""
    return _LINE.sub(lambda m: m.group(1) + _escape(m.group(2)) + m.group(3), text)


def _escape(inner: str) -> str:
    inner = re.sub(r'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})', r"\\\\", inner)
    inner = re.sub(r'(?<!\\)((?:\\\\)*)"', r'\1\\"', inner)
    trailing = len(inner) - len(inner.rstrip("\\"))
    return inner + "\\" if trailing % 2 else inner


def _quote_by_structure(text: str) -> str:
    """Quotes inside a value: one ends the value only where a key, a bracket or a value follows."""
    out: list[str] = []
    nesting: list[str] = []
    position, is_key = 0, False
    while position < len(text):
        character = text[position]
        if character in "{[":
            nesting.append(character)
            is_key = character == "{"
        elif character in "}]" and nesting:
            nesting.pop()
        elif character == ",":
            is_key = bool(nesting) and nesting[-1] == "{"
        elif character == ":":
            is_key = False
        if character != '"':
            out.append(character)
            position += 1
            continue
        ends = _VALUE_ENDS_IN_OBJECT if not nesting or nesting[-1] == "{" else _VALUE_ENDS_IN_ARRAY
        end = _end_of_string(text, position + 1, _KEY_ENDS if is_key else ends)
        if end is None:
            return text
        out.append('"' + _escape(text[position + 1 : end]) + '"')
        position = end + 1
    return "".join(out)


def _end_of_string(text: str, start: int, ends: re.Pattern[str]) -> int | None:
    position = text.find('"', start)
    while position >= 0:
        first = position
        while first > start and text[first - 1] == "\\":
            first -= 1
        if (position - first) % 2 == 0 and ends.match(text, position + 1):
            return position
        position = text.find('"', position + 1)
    return None
