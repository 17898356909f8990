"""Fixtures of the rules' tests."""

import warnings
from collections.abc import Iterator

import pytest


@pytest.fixture
def one_thread(one_thread: None) -> Iterator[None]:
    """With more workers than processors, as the scenarios have them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="This DataLoader will create")
        yield
