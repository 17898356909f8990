"""One rank of a job, as the function that runs in it sees it."""

import json
import time
from collections.abc import Callable
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

EVENTS = "events.jsonl"
POLL_S = 0.005


class Rank:
    """Its number, and how it talks to the others and to the caller without any collective.

    Attributes:
        number: From 0.
        world_size: How many there are.
        local_number: Its number on this machine.
        folder: The job's folder, which all ranks of this machine share.
    """

    def __init__(self, *, number: int, world_size: int, local_number: int, folder: Path) -> None:
        self.number = number
        self.world_size = world_size
        self.local_number = local_number
        self.folder = folder
        self._asked = 0

    @cached_property
    def store(self) -> Any:
        """Keys and values that all ranks see, in a file: no port is opened."""
        from torch._C._distributed_c10d import FileStore

        return FileStore(str(self.folder / "store"), self.world_size)

    def join(self, backend: str, timeout_s: float) -> None:
        """Form the process group of all ranks."""
        from torch import distributed
        from torch._C._distributed_c10d import PrefixStore

        distributed.init_process_group(
            backend,
            store=PrefixStore("group", self.store),
            rank=self.number,
            world_size=self.world_size,
            timeout=timedelta(seconds=timeout_s),
        )

    def leave(self) -> None:
        """Take the process group apart, where there is one."""
        from torch import distributed

        if distributed.is_initialized():
            distributed.destroy_process_group()

    def agree(self, value: Any) -> Any:
        """The value that rank 0 gives, on every rank; the others' are not looked at.

        What follows from measured times is decided so: ranks that took different ways would wait
        for each other for ever.
        """
        self._asked += 1
        key = f"agreed/{self._asked}"
        if self.number == 0:
            self.store.set(key, json.dumps(value))
            return value
        return json.loads(self._wait_for(key))

    def gather(self, value: Any) -> list[Any]:
        """The plain values of all ranks, in their order, on every rank."""
        self._asked += 1
        self.store.set(f"gathered/{self._asked}/{self.number}", json.dumps(value))
        return [
            json.loads(self._wait_for(f"gathered/{self._asked}/{n}"))
            for n in range(self.world_size)
        ]

    def barrier(self) -> None:
        """Wait until every rank is here."""
        self.gather(None)

    def say(self, **event: Any) -> None:
        """Tell the caller something, from rank 0 only."""
        if self.number == 0:
            with (self.folder / EVENTS).open("a", encoding="utf-8") as events:
                events.write(json.dumps(event) + "\n")

    def _wait_for(self, key: str) -> Any:
        """A key's value; a rank that died is seen by the launcher, which ends this one."""
        check: Callable[[list[str]], bool] = self.store.check
        while not check([key]):
            time.sleep(POLL_S)
        return self.store.get(key)
