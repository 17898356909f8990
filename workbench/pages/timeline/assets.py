"""The timeline's script and style, as the widget and as static pages carry them."""

import base64
import gzip
from functools import cache
from pathlib import Path

from workbench.pages.script import joined

HERE = Path(__file__).parent

_WAKE = """(async () => {{
  try {{
    if (!window.workbenchTimeline) {{
      const packed = Uint8Array.from(atob("{script}"), (char) => char.charCodeAt(0));
      const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
      window.workbenchTimeline = new Response(stream).text();
    }}
    const code = document.createElement("script");
    code.textContent = await window.workbenchTimeline;
    document.head.append(code);
    code.remove();
  }} catch (error) {{
    document.querySelectorAll('[data-wb-timeline="waiting"]').forEach((place) => {{
      place.dataset.wbTimeline = "failed";
    }});
  }}
}})();"""
"""Unpacks the script and runs it as an element: policies that allow inline scripts allow that."""


@cache
def stylesheet() -> str:
    """The style of both."""
    return (HERE / "timeline.css").read_text(encoding="utf-8")


@cache
def widget_script() -> str:
    """The module that anywidget loads."""
    return joined(HERE / "widget.js")


@cache
def page_script() -> str:
    """The script of a static page, in a scope of its own."""
    return f"(() => {{\n{joined(HERE / 'page.js')}\n}})();"


@cache
def waking_script() -> str:
    """The same, packed, as a page carries it."""
    packed = gzip.compress(page_script().encode(), compresslevel=9, mtime=0)
    return _WAKE.format(script=base64.b64encode(packed).decode("ascii"))
