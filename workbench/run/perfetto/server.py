"""A server for the Perfetto UI and one trace; it listens on 127.0.0.1 and knows no other file.

Everything stands below a random token, so that other pages in the browser and other users of the
machine cannot guess it. The list of files is made once: a path that is not in it does not exist,
whatever it says. The content policy lets the pages reach nothing but this server.
"""

import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote, unquote, urlsplit

HOST = "127.0.0.1"
TRACE = "trace"
UI = "ui/"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".wasm": "application/wasm",
    ".woff2": "font/woff2",
}
_POLL_S = 0.1
"""How often a running server looks whether it shall stop."""
_LEFT_OUT = ("service_worker.js",)
_FRAMED_BY = "http://localhost:* http://127.0.0.1:* https://localhost:* vscode-webview:"
"""Who may show the UI in a frame: notebooks on this machine."""
POLICY = "; ".join(
    (
        "default-src 'self'",
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "connect-src 'self' data: blob:",
        "img-src 'self' data: blob:",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
        f"frame-ancestors 'self' {_FRAMED_BY}",
    )
)


@dataclass(frozen=True, kw_only=True)
class _Served:
    path: Path
    type: str
    fresh: bool
    """Not to be kept by the browser."""


class TraceServer:
    """Serves the UI's files and one trace until ``stop``."""

    def __init__(self, ui: Path, trace: Path) -> None:
        self._token = secrets.token_urlsafe(24)
        self._trace = f"{TRACE}/{quote(trace.name, safe='')}"
        files = {f"{UI}{name}": served for name, served in _files(ui).items()}
        files[f"{TRACE}/{trace.name}"] = _Served(
            path=trace, type="application/octet-stream", fresh=True
        )
        self._server = _Server((HOST, 0), _Handler)
        self._server.known = {f"/{self._token}/{name}": served for name, served in files.items()}
        self._server.hosts = {f"{name}:{self.port}" for name in (HOST, "localhost")}
        self._thread = Thread(
            target=self._server.serve_forever,
            args=(_POLL_S,),
            name="workbench-perfetto",
            daemon=True,
        )
        self._thread.start()

    @property
    def port(self) -> int:
        """The port, chosen by the system."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The UI, told to open the trace."""
        root = f"http://{HOST}:{self.port}/{self._token}/"
        trace = quote(root + self._trace, safe="")
        return f"{root}{UI}index.html#!/?mode=embedded&url={trace}"

    @property
    def running(self) -> bool:
        """Whether it still answers."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Stop answering; harmless when it has stopped."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    known: Mapping[str, _Served]
    hosts: set[str]


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "workbench"
    sys_version = ""
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        served = self.server.known.get(unquote(urlsplit(self.path).path))
        if self.headers.get("Host") not in self.server.hosts or served is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        try:
            file = served.path.open("rb")
        except OSError:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        with file, suppress(ConnectionError, TimeoutError):
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", served.type)
            self.send_header("Content-Length", str(file.seek(0, 2)))
            self.send_header("Cache-Control", "no-store" if served.fresh else "max-age=3600")
            self.end_headers()
            file.seek(0)
            if with_body:
                shutil.copyfileobj(file, self.wfile, 1 << 20)

    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("X-Content-Type-Options", "nosniff")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing: the terminal is not ours."""


def _files(ui: Path) -> dict[str, _Served]:
    """Every file of the UI by its path below the folder, links left out."""
    found = {}
    for path in ui.rglob("*"):
        kind = _TYPES.get(path.suffix)
        if kind is None or path.is_symlink() or not path.is_file() or path.name in _LEFT_OUT:
            continue
        found[path.relative_to(ui).as_posix()] = _Served(
            path=path, type=kind, fresh=path.suffix == ".html"
        )
    return found
