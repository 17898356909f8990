"""What the machine's probes say about a precision on the device of a run."""

import torch

from workbench.machine import DtypeProbe, probe

DTYPE_OF = {"bf16": "bf16", "bf16_pure": "bf16", "fp16": "fp16", "fp8": "fp8", "tf32": "tf32"}
"""The probed type of each precision below fp32."""


def probed(dtype: str, device: torch.device) -> DtypeProbe:
    """What was measured for a type; asked in another process the first time, for seconds."""
    return next(each for each in probe(str(device)) if each.dtype == dtype)
