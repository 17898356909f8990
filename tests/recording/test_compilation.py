"""What torch.compile did, as numbers."""

import subprocess
import sys

import torch

from workbench.recording.compilation import compile_counters


def test_a_process_that_never_compiles_does_not_import_the_compiler() -> None:
    script = (
        "import sys, torch\n"
        "from workbench.recording.compilation import compile_counters\n"
        "assert compile_counters().graphs == 0\n"
        "assert 'torch._dynamo' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_new_shape_is_a_recompile_until_the_limit() -> None:
    """Twelve sizes, eight variants at most: 8 graphs, 7 of them again, one function given up."""

    def double(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    torch.compiler.reset()
    before = compile_counters()
    compiled = torch.compile(double, backend=lambda graph, inputs: graph.forward, dynamic=False)
    for size in range(2, 14):
        compiled(torch.ones(size))
    found = compile_counters().since(before)
    assert (found.graphs, found.graph_breaks, found.limit_reached) == (8, 0, 1)
    assert found.recompiles >= 7
    assert found.seconds > 0
