"""Progress bars: only for what takes long, and only on a terminal."""

import gzip
import io
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from workbench.cli import bars


class Terminal(io.StringIO):
    """What is written to it is shown to somebody."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def long_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(bars, "LONG_BYTES", 1000)
    (tmp_path / "t.json").write_bytes(b" " * 2000)
    return tmp_path / "t.json"


def shown(path: Path, told: tuple[int, ...], to: io.StringIO) -> str:
    """What reading a file writes to stderr, when it tells these numbers of bytes."""
    with redirect_stderr(to), bars.reading_bar(path) as advance:
        for done in told:
            assert advance is not None
            advance(done)
    return to.getvalue()


def test_a_long_file_gets_a_bar_up_to_its_size(long_trace: Path) -> None:
    text = shown(long_trace, (500, 1000, 2000), Terminal())

    assert "reading t.json" in text
    assert "/2.00k" in text


def test_a_short_file_gets_none(long_trace: Path) -> None:
    long_trace.write_bytes(b" " * 900)
    with redirect_stderr(Terminal()), bars.reading_bar(long_trace) as advance:
        assert advance is None


def test_without_a_terminal_there_is_none(long_trace: Path) -> None:
    with redirect_stderr(io.StringIO()), bars.reading_bar(long_trace) as advance:
        assert advance is None


def test_a_trace_from_the_cache_shows_no_bar(long_trace: Path) -> None:
    """Mapping it tells nothing."""
    assert shown(long_trace, (), Terminal()) == ""


def test_compressed_text_counts_as_what_it_holds(tmp_path: Path) -> None:
    (tmp_path / "t.json.gz").write_bytes(gzip.compress(b" " * 123_456))

    assert bars.text_bytes(tmp_path / "t.json.gz") == 123_456
    assert bars.text_bytes(tmp_path / "missing") == 0
