"""How other threads break off the user's code in the thread that trains."""

from workbench.workload.async_exceptions import Sent

LOADING = "waiting for a batch"
TRAINING = "running a training step"
COMPARING = "comparing settings"


class Ended(Sent):
    """Raised inside the user's code when a session must end."""
