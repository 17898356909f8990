"""The program of every rank: ``python -m workbench.parallel.worker FOLDER``."""

import faulthandler
import os
import signal
import sys
from pathlib import Path
from typing import Any

from workbench.parallel.carrying import dumps, unpack
from workbench.parallel.failures import write_failure
from workbench.parallel.launched import launched
from workbench.parallel.rank import Rank


def main(folder: Path) -> int:
    """Run the job's function as the rank that the launcher's environment names."""
    where = launched()
    if where is None:
        raise SystemExit("this program is started by a launcher, which names its rank.")
    number = where.rank
    stacks = (folder / f"rank{number}.stacks").open("w", encoding="utf-8")
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=False)
    # Last: whoever reads this number sends the signal, which ends a process that does not know it.
    (folder / f"rank{number}.pid").write_text(str(os.getpid()))
    rank = Rank(
        number=number,
        world_size=where.world_size,
        local_number=number if where.local_rank is None else where.local_rank,
        folder=folder,
    )
    try:
        _keep(folder, number, _run(rank, folder))
    except BaseException as error:  # noqa: BLE001 - it is told to the caller
        write_failure(folder, number, error)
        return 1
    return 0


def _run(rank: Rank, folder: Path) -> Any:
    function, payload = unpack(folder)
    result = function(rank, payload)
    rank.leave()
    return result


def _keep(folder: Path, number: int, result: Any) -> None:
    partial = folder / f"rank{number}.result.partial"
    partial.write_bytes(dumps(result))
    partial.rename(folder / f"rank{number}.result")


if __name__ == "__main__":
    code = main(Path(sys.argv[1]))
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads and workers of the user's own must not hold up a rank that is done.
    os._exit(code)
