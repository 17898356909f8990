"""The Perfetto server: its own files and one trace, to this machine, for whoever has the token."""

import gzip
import http.client
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import workbench as wb
from tests.run.test_open import gpu_trace
from workbench.errors import MissingExtraError, RunError
from workbench.run.perfetto import PerfettoView, view

pytestmark = pytest.mark.slow


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[PerfettoView]:
    (tmp_path / "secret.txt").write_text("not yours")
    shown = wb.open(gpu_trace().write(tmp_path / "my trace.json.gz")).perfetto()
    yield shown
    shown.stop()


def ask(
    shown: PerfettoView, path: str, *, method: str = "GET", host: str | None = None
) -> tuple[int, bytes, http.client.HTTPMessage]:
    port = urlsplit(shown.url).port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.putrequest(method, path, skip_host=True)
    connection.putheader("Host", host or f"127.0.0.1:{port}")
    connection.endheaders()
    answer = connection.getresponse()
    found = answer.status, answer.read(), answer.headers
    connection.close()
    return found


def root(shown: PerfettoView) -> str:
    return urlsplit(shown.url).path.removesuffix("ui/index.html")


def test_the_address_opens_the_ui_and_tells_it_the_trace(opened: PerfettoView) -> None:
    status, page, _ = ask(opened, root(opened) + "ui/index.html")
    trace = urlsplit(unquote(opened.url.partition("&url=")[2]))

    assert status == 200
    assert b"Perfetto UI" in page
    assert trace.hostname == "127.0.0.1"
    assert ask(opened, trace.path)[1] == opened.trace.read_bytes()


def test_it_listens_on_this_machine_only(opened: PerfettoView) -> None:
    assert urlsplit(opened.url).hostname == "127.0.0.1"
    assert opened._server._server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/ui/index.html",
        "/wrong-token/ui/index.html",
        "{root}",
        "{root}ui",
        "{root}ui/",
        "{root}trace/",
        "{root}trace/secret.txt",
        "{root}trace/../secret.txt",
        "{root}trace/..%2fsecret.txt",
        "{root}ui/../../viewer.py",
        "{root}ui/%2e%2e/%2e%2e/viewer.py",
        "{root}ui//etc/passwd",
        "{root}ui/trace_processor",
        "{root}ui/service_worker.js",
        "{root}ui/index.html%00",
    ],
)
def test_nothing_else_is_there(opened: PerfettoView, path: str) -> None:
    """No listing, no way up, no file that is not one of the UI's, and none without the token."""
    assert ask(opened, path.format(root=root(opened)))[0] == 404


def test_a_name_that_was_bound_to_this_address_is_refused(opened: PerfettoView) -> None:
    """DNS rebinding: a page of another site whose name now points here."""
    assert ask(opened, root(opened) + "ui/index.html", host="evil.example:80")[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_it_only_gives(opened: PerfettoView, method: str) -> None:
    assert ask(opened, root(opened) + "ui/index.html", method=method)[0] == 501


def test_pages_may_reach_nothing_but_this_server(opened: PerfettoView) -> None:
    _, body, headers = ask(opened, root(opened) + "ui/index.html", method="HEAD")
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))

    assert body == b""
    assert policy["default-src"] == "'self'"
    assert policy["connect-src"] == "'self' data: blob:"
    assert "http" not in " ".join(v for k, v in policy.items() if k != "frame-ancestors")
    assert headers["Access-Control-Allow-Origin"] is None
    assert headers["Referrer-Policy"] == "no-referrer"


def test_every_server_has_a_token_of_its_own(opened: PerfettoView, tmp_path: Path) -> None:
    other = wb.open(gpu_trace().write(tmp_path / "other.json")).perfetto()
    other.stop()

    assert root(other) != root(opened)
    assert len(root(other)) > 30


def test_asking_again_gives_the_same_server_until_it_is_stopped(opened: PerfettoView) -> None:
    assert wb.open(opened.trace).perfetto() is opened
    opened.stop()
    again = wb.open(opened.trace).perfetto()
    again.stop()
    assert again is not opened


def test_stopped_it_answers_no_more_and_shows_no_frame(opened: PerfettoView) -> None:
    opened.stop()
    opened.stop()

    with pytest.raises(ConnectionRefusedError):
        ask(opened, "/")
    assert repr(opened) == "Perfetto over my trace.json.gz: stopped"
    assert "iframe" not in opened._repr_mimebundle_()["text/html"]


def test_a_notebook_shows_a_frame_and_a_link(opened: PerfettoView) -> None:
    shown = opened._repr_mimebundle_()

    assert shown["text/html"].count(opened.url.replace("&", "&amp;")) == 2
    assert "<iframe" in shown["text/html"]
    assert opened.url in shown["text/plain"]


def test_a_hostile_file_name_stays_text(tmp_path: Path) -> None:
    name = '"><img src=x onerror=alert(1)>.json'
    shown = wb.open(gpu_trace().write(tmp_path / name)).perfetto()
    page = shown._repr_mimebundle_()["text/html"]
    shown.stop()

    assert "<img" not in page


def test_a_run_opens_the_trace_of_a_rank(tmp_path: Path) -> None:
    for rank in (0, 3):
        gpu_trace().write(tmp_path / f"rank{rank}.json")
    run = wb.open(tmp_path)
    first, other = run.perfetto(), run.perfetto(rank=3)
    first.stop()
    other.stop()

    assert (first.trace.name, other.trace.name) == ("rank0.json", "rank3.json")
    with pytest.raises(RunError, match="no rank 1: it has 0, 3"):
        run.perfetto(rank=1)


def test_a_damaged_trace_is_mended_for_perfetto(tmp_path: Path) -> None:
    """The list of events is never closed, which Perfetto refuses."""
    text = gpu_trace().write(tmp_path / "cut.json").read_text()
    (tmp_path / "cut.json").write_text(text.removesuffix("]}"))
    shown = wb.open(tmp_path / "cut.json").perfetto()
    served = urlsplit(unquote(shown.url.partition("&url=")[2])).path
    _, data, _ = ask(shown, served)
    shown.stop()

    assert served.endswith("/trace/cut.json.gz")
    assert len(json.loads(gzip.decompress(data))["traceEvents"]) >= 15
    assert not list(Path(tempfile.gettempdir()).glob(f"workbench-perfetto-*/{served[-11:]}"))


def test_a_trace_that_is_gone_is_said(tmp_path: Path) -> None:
    path = gpu_trace().write(tmp_path / "t.json")
    run = wb.open(path)
    path.unlink()

    with pytest.raises(RunError, match="is gone"):
        run.perfetto()


def test_without_the_extra_the_error_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(view, "find_spec", lambda _: None)

    with pytest.raises(MissingExtraError, match=r"torch-workbench\[perfetto\]"):
        wb.open(gpu_trace().write(tmp_path / "t.json")).perfetto()


def test_a_process_that_forgets_to_stop_it_still_ends(tmp_path: Path) -> None:
    path = gpu_trace().write(tmp_path / "t.json")
    code = (
        "import sys, workbench as wb\n"
        f"shown = wb.open({str(path)!r}).perfetto()\n"
        "print(shown.url)\n"
        "print([m for m in ('torch', 'IPython', 'viztracer') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.splitlines()[1] == "[]"
    assert done.stderr == ""
