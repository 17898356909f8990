"""The user's model, data and step: described once, prepared under settings, always put back."""

from workbench.workload.batches import Batches
from workbench.workload.card import ModelCard, model_card
from workbench.workload.control import Control
from workbench.workload.preparation import prepare
from workbench.workload.training import Training
from workbench.workload.workload import Workload

__all__ = ["Batches", "Control", "ModelCard", "Training", "Workload", "model_card", "prepare"]
