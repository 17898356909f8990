"""Text from traces, users and machines becomes page text, and never markup or script."""

import html
import json
from typing import Any

_REPLACEMENT = "\ufffd"


def visible(text: str) -> str:
    """The text without characters that break lines, turn the writing direction, or cannot be saved.

    Control characters, U+2028 and U+2029, direction overrides and lone surrogates each become the
    replacement character.
    """
    return "".join(_REPLACEMENT if _hidden(ord(char)) else char for char in text)


def escape(value: object) -> str:
    """Any value as text inside an element or a quoted attribute."""
    return html.escape(visible(str(value)), quote=True)


def json_for_script(value: Any) -> str:
    """JSON that may stand inside a script element: nothing in it can close the element."""
    return guard_script(json.dumps(value, allow_nan=False, separators=(",", ":")))


def guard_script(text: str) -> str:
    """JSON text with the characters escaped that mean something to HTML or to old JavaScript."""
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def _hidden(code: int) -> bool:
    control = code < 0x20 or 0x7F <= code < 0xA0
    turns_text = 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069
    return control or turns_text or code in (0x2028, 0x2029) or 0xD800 <= code <= 0xDFFF
