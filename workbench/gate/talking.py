"""Orders to the process that measures a revision, and its answers."""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from workbench.errors import GateError
from workbench.parallel.process_tree import let_go, start_tree

OURS = Path(__file__).parents[2]
START = (
    "import sys; sys.path.insert(0, {ours!r}); import workbench.gate.side as side; "
    "sys.path.remove({ours!r}); side.main()"
)
LOG_LINES = 8


class Talk:
    """A process in a revision's folder; ends with everything that it started."""

    def __init__(self, top: Path, at: Path, *, name: str, until: float) -> None:
        self.name = name
        self._top, self._at, self._until = top, at, until

    def __enter__(self) -> Self:
        self._log = tempfile.TemporaryFile()
        read, write = os.pipe()
        self._orders = os.fdopen(write, "wb")
        self._process = start_tree(
            [sys.executable, "-P", "-c", START.format(ours=str(OURS)), str(self._top)],
            os.environ,
            self._log,
            folder=self._at / "nothing",
            given=read,
            answers=subprocess.PIPE,
            at=self._at,
        )
        os.close(read)
        self._answers: queue.Queue[bytes | None] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        return self

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._answers.put(line)
        self._answers.put(None)

    def ask(self, do: str, **order: Any) -> dict[str, Any]:
        """Give an order and wait for its answer.

        Raises:
            GateError: It failed, the process ended, or the time is over.
        """
        try:
            self._orders.write(json.dumps({"do": do, **order}).encode() + b"\n")
            self._orders.flush()
        except BrokenPipeError:
            pass  # it is gone, and the answer says so
        try:
            line = self._answers.get(timeout=max(0.0, self._until - time.monotonic()))
        except queue.Empty:
            raise GateError(
                f"{self.name}: the time limit ended the measurement at {do!r}: give a larger "
                "--time-limit, fewer --steps or --blocks."
            ) from None
        if line is None:
            raise GateError(
                f"{self.name}: its process ended at {do!r}. Last words:\n{self._said()}"
            )
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise GateError(f"{self.name} cannot be measured: {answer['error']}.")
        return answer

    def _said(self) -> str:
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").splitlines()
        return "\n".join(lines[-LOG_LINES:])

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(BrokenPipeError):
            self._orders.close()
        let_go(self._process)
        self._listener.join(timeout=5)
        if self._process.stdout is not None and not self._listener.is_alive():
            self._process.stdout.close()
        self._log.close()
