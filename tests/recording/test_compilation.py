"""What torch.compile did, as numbers."""

import subprocess
import sys

import pytest
import torch

from workbench.recording.compilation import compile_counters
from workbench.recording.step_starts import StepStarts

pytestmark = pytest.mark.slow


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
    steps = StepStarts()
    for size in range(2, 14):
        steps.mark()
        compiled(torch.ones(size))
    found = compile_counters().since(before)
    assert (found.graphs, found.graph_breaks, found.limit_reached) == (8, 0, 1)
    assert found.recompiles == 7
    assert found.seconds > 0
    (told,) = found.recompiled(steps)
    assert told["function"].startswith("double (test_compilation.py:")
    assert (told["compilations"], told["limit_reached"]) == (8, True)
    assert told["limit_step"] == 8, "steps 0 to 7 made the eight variants"
    assert "expected 9, actual 10" in told["last_reason"], "the ninth size was one too many"


def test_a_size_that_torch_learns_to_vary_takes_two_graphs_and_python_inside_breaks_one() -> None:
    """One recompilation makes a size dynamic; ``.item()`` and ``print`` are a break each."""

    def printing(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        print(y.sum().item())  # noqa: T201 - what breaks the graph
        return y + 1

    torch.compiler.reset()
    counting = {"backend": lambda graph, inputs: graph.forward}
    before = compile_counters()
    compiled = torch.compile(lambda x: x * 3, **counting)
    for size in range(2, 14):
        compiled(torch.ones(size))
    found = compile_counters().since(before)
    assert (found.graphs, found.recompiles, found.limit_reached) == (2, 1, 0)
    before = compile_counters()
    torch.compile(printing, **counting)(torch.ones(3))
    found = compile_counters().since(before)
    assert (found.graphs, found.graph_breaks, found.recompiled()) == (2, 2, [])
