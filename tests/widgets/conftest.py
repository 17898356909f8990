"""A panel that is closed after its test."""

from pathlib import Path
from typing import Any

import pytest

from tests.widgets.kernel import Kernel


@pytest.fixture
def kernel(tmp_path: Path) -> Any:
    made = Kernel(tmp_path)
    yield made
    made.session.fail = None
    made.panel.close()
