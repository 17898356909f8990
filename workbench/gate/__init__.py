"""The gate: whether a head is worse than its base or a budget, or nobody can tell."""

from workbench.gate.budget import Budget, read_budget
from workbench.gate.gate import Gate, gate
from workbench.gate.judging import Judged

__all__ = ["Budget", "Gate", "Judged", "gate", "read_budget"]
