"""Names that are safe inside a Kineto trace.

Kineto (torch 2.13) writes names unescaped: a quote breaks the whole file, a backslash becomes a
slash, a newline is dropped, and any control or non-ASCII character turns the name into ``unknown``.
"""


class Labels:
    """Alters names for the trace and remembers the real ones."""

    def __init__(self) -> None:
        self.real: dict[str, str] = {}
        """Altered → real, only where they differ."""
        self._recorded: dict[str, str] = {}

    def safe(self, name: str) -> str:
        """``name`` as it may be recorded; different names stay different."""
        if name in self._recorded:
            return self._recorded[name]
        kept = "".join(c if " " <= c <= "~" and c not in '"\\' else "_" for c in name) or "_"
        altered, number = kept, 2
        while altered in self._recorded.values():
            altered, number = f"{kept}~{number}", number + 1
        self._recorded[name] = altered
        if altered != name:
            self.real[altered] = name
        return altered
