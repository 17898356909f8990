"""The script that writes the lessons, which lies outside of the package."""

import importlib.util
from types import ModuleType

from tests.house.files import ROOT

LESSONS = ROOT / "notebooks/lessons"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make_lessons = script("make_lessons")
