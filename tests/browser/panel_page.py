"""The panel's script in a bare page, over a desk whose session trains nothing."""

import base64
import json
import threading
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.widgets.standin import StandIn
from workbench.pages.script import joined
from workbench.widgets.panel.desk import Desk
from workbench.widgets.panel.runs import Shelf
from workbench.widgets.panel.widget import Panel

SET_UP = """async (script) => {
  const { default: define } = await import(`data:text/javascript;base64,${script}`);
  const callbacks = new Set();
  window.sent = [];
  window.onItsWay = 0;
  window.model = {
    get: () => null,
    on: (_name, callback) => callbacks.add(callback),
    off: (_name, callback) => callbacks.delete(callback),
    send: (content) => {
      window.sent.push(content);
      if (window.deaf) return;
      window.onItsWay += 1;
      window.toKernel(content).then(() => { window.onItsWay -= 1; });
    },
  };
  window.fromKernel = (content, buffers) => {
    const bytes = buffers.map((text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)));
    const views = bytes.map((one) => new DataView(one.buffer));
    for (const callback of callbacks) callback(content, views);
  };
  window.callbacks = callbacks;
  const widget = await define();
  widget.initialize({ model: window.model });
  window.show = () => widget.render({ model: window.model, el: document.querySelector("main") });
  window.cleanUp = window.show();
}"""


class Bench:
    """A page, a panel and a session; messages go between them when the test pumps them."""

    def __init__(self, page: Page, session: StandIn, folder: Path, **desk: Any) -> None:
        self.page = page
        self.session = session
        self.desk = Desk(session, shelf=Shelf(folder), title="digits", **desk)
        self.panel = Panel(self.desk)
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        self._outbox: list[tuple[Any, list[bytes]]] = []
        self._lock = threading.Lock()
        self.panel._say = self._take  # type: ignore[method-assign]
        css = (Path(__file__).parents[2] / "widgets/panel/panel.css").read_text(encoding="utf-8")
        head = "<head><title>t</title></head>"
        page.set_content(f"<html lang=en>{head}<body><main></main></body></html>")
        page.add_style_tag(content=f"body {{ margin: 0 }} {css}")
        page.expose_function("toKernel", self._receive)
        script = joined(Path(__file__).parents[2] / "widgets/panel/panel.js")
        page.evaluate(SET_UP, base64.b64encode(script.encode()).decode())
        self.settle()

    def _take(self, content: Any, buffers: list[bytes] | None = None) -> None:
        with self._lock:
            self._outbox.append((content, buffers or []))

    def _receive(self, content: Any) -> None:
        self.panel._receive(None, content, [])

    def pump(self) -> int:
        """Hand the page what the kernel has sent; how many messages that were."""
        with self._lock:
            waiting, self._outbox = self._outbox, []
        for content, buffers in waiting:
            coded = [base64.b64encode(one).decode() for one in buffers]
            plain = json.loads(json.dumps(content))
            self.page.evaluate("([c, b]) => fromKernel(c, b)", [plain, coded])
        return len(waiting)

    def settle(self) -> None:
        """Let messages go to and fro until both sides have nothing more to say.

        What the kernel would send within a quarter of a second is sent at once.
        """
        for _ in range(200):
            self.page.wait_for_function("() => window.onItsWay === 0")
            self.panel._errands.wait(10)
            self.panel._update()
            if not self.pump():
                return
        raise AssertionError("page and kernel never came to rest")
