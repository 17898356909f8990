"""The names that a type checker knows are those that a Run draws."""

from pathlib import Path
from typing import Any, get_args

import pytest

from tests.findings.loops import looped
from workbench.errors import RunError
from workbench.run.figure_names import FigureName


def test_an_unknown_figure_lists_the_very_names_that_are_typed(tmp_path: Path) -> None:
    run = looped(lambda loop, at: None, 1000, steps=2).run(tmp_path)
    unknown: Any = "pie"
    with pytest.raises(RunError, match="no figure is called 'pie'; there are ") as refused:
        run.figure(unknown)
    listed = str(refused.value).partition("there are ")[2].removesuffix(".").split(", ")
    assert sorted(listed) == sorted(get_args(FigureName))
