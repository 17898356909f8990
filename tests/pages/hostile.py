"""Names that would break a page which trusted them, and a parser that tells whether one did."""

from html.parser import HTMLParser

NAMES = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</script><svg onload=alert(1)>",
    "'><a href='javascript:alert(1)'>",
    "separator\u2028turned\u202e",
    "<!--",
    "&lt;b&gt;",
    "lone \ud800 surrogate",
)

_OURS = {
    *("style", "script", "div", "p", "h3", "ol", "li", "dl", "dt", "dd", "span", "code", "section"),
    *("table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td", "details", "summary"),
    *("figure", "figcaption", "pre"),
}


class Page(HTMLParser):
    """What a browser would see of a fragment."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.foreign: list[str] = []
        self.scripts: list[str] = []
        self.words = ""
        self.labels: list[str] = []
        self._inside: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember what is not ours."""
        self._inside.append(tag)
        if tag == "script":
            self.scripts.append("")
        if tag not in _OURS:
            self.foreign.append(tag)
        self.foreign += [name for name, _ in attrs if name.startswith("on") or name == "href"]
        self.labels += [value or "" for name, value in attrs if name == "aria-label"]

    def handle_endtag(self, tag: str) -> None:
        """Leave the element."""
        if tag in self._inside:
            while self._inside.pop() != tag:
                pass

    def handle_comment(self, data: str) -> None:
        """We write none."""
        self.foreign.append(f"comment {data[:20]}")

    def handle_data(self, data: str) -> None:
        """Words are what stands outside scripts and styles."""
        if self._inside and self._inside[-1] == "script":
            self.scripts[-1] += data
        elif not self._inside or self._inside[-1] != "style":
            self.words += data


def shown(name: str) -> str:
    """How a page shows a hostile name: every character, but the dangerous ones as a mark."""
    for bad in "\u2028\u202e\ud800":
        name = name.replace(bad, "\ufffd")
    return name
