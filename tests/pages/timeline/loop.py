"""A small loop on a GPU, written by hand, whose timeline is known."""

from pathlib import Path

import workbench as wb
from tests.kineto import Kineto
from workbench.run.run import Run

US = 1000
"""Nanoseconds of a microsecond."""


def kineto() -> Kineto:
    """Two steps of 1 ms: 400 µs in the loader, then one operator that launches one kernel."""
    made = Kineto(gpu=True)
    for number in range(2):
        at = number * 1000.0
        made.step(number, at, 1000)
        made.loader(at + 10, 400)
        made.op("aten::linear", at + 420, 80)
        made.op("aten::addmm", at + 430, 60, **{"Input Dims": [[8, 4], [4, 2]]})
        made.launched(
            "sgemm_128x64", call=(at + 440, 10), kernel=(at + 460, 500), correlation=number + 1
        )
    made.kernel(
        "Memcpy HtoD (Pageable -> Device)", 1970, 20, stream=9, cat="gpu_memcpy", bytes=4096
    )
    return made


def opened(made: Kineto, folder: Path) -> Run:
    """A Run over any trace."""
    return wb.open(made.write(folder / "loop.json.gz"))


def run(folder: Path) -> Run:
    """The Run over it."""
    return opened(kineto(), folder)
