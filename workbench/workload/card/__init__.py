"""What a model costs, worked out without running it."""

from workbench.workload.card.card import ModelCard
from workbench.workload.card.making import model_card

__all__ = ["ModelCard", "model_card"]
