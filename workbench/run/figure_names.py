"""The names of the charts of a Run."""

from typing import Literal

FigureName = Literal[
    "breakdown",
    "waterfall",
    "steps",
    "step_parts",
    "critical_path",
    "kernels",
    "families",
    "operators",
    "idle",
    "input",
    "stalls",
    "loader_lanes",
    "loader_rate",
    "epochs",
    "queue",
    "copies",
    "communication",
    "memory",
    "ranks",
    "rank_steps",
    "roofline",
    "roof_waterfall",
    "gemms",
    "module_tree",
    "module_flops",
    "module_bytes",
]
