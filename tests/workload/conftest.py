"""Tests of tiny models."""

import pytest


@pytest.fixture(autouse=True)
def alone(one_thread: None) -> None:
    """Every test here computes on one thread."""
