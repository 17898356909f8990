"""Names from traces are foreign text: made short, broken into lines, and never read as markup."""

import html
import textwrap

LABEL = 64
HOVER = 88
LONGEST = 2000


def plain(name: str) -> str:
    """Text that plotly draws as it stands: no tags, links, formulas or templates.

    Control characters become the replacement character, so that a name cannot break a line or
    turn the writing direction.
    """
    visible = "".join(_visible(char) for char in name)
    return html.escape(visible, quote=False).replace("$", "&#36;")


def shorten(name: str, width: int = LABEL) -> str:
    """The name with its middle left out, so that both ends of a C++ signature stay readable."""
    if len(name) <= width:
        return name
    head = (width - 1) * 2 // 3
    return f"{name[:head]}…{name[len(name) - (width - 1 - head) :]}"


def label(name: str, width: int = LABEL) -> str:
    """A short name, safe to draw."""
    return plain(shorten(name, width))


def full(name: str) -> str:
    """The whole name for a tooltip, in lines, safe to draw; cut only beyond 2000 characters."""
    lines = textwrap.wrap(shorten(name, LONGEST), HOVER, break_on_hyphens=False) or [""]
    return "<br>".join(plain(line) for line in lines)


def _visible(char: str) -> str:
    code = ord(char)
    turns_text = 0x202A <= code <= 0x202E or 0x2066 <= code <= 0x2069
    separates = code in (0x2028, 0x2029)
    surrogate = 0xD800 <= code <= 0xDFFF
    if code < 0x20 or 0x7F <= code < 0xA0 or turns_text or separates or surrogate:
        return "\ufffd"
    return char
