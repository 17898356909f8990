"""Which device kernels are communication, told from their names by a table of patterns.

The table is data: to teach a name, add its pattern here and the name to the test's corpus.
"""

import re
from functools import lru_cache

COMMUNICATION_PATTERNS: tuple[tuple[str, str], ...] = (
    ("NCCL and RCCL", r"nccl|rccl"),
    ("oneCCL", r"oneccl|(^|[^a-z])ccl[_:]"),
    ("HCCL", r"hccl|hcom_"),
    ("CNCL", r"cncl"),
    ("DeepEP", r"deep_?ep|(intra|inter)node(_ll)?::\w*(dispatch|combine|notify|barrier)"),
    ("one-sided memory", r"nvshmem|rocshmem|ishmem|multimem_|symm_?mem"),
    ("custom all-reduce of inference engines", r"cross_device_reduce|(one|two)_?shot_?reduce"),
    (
        "collectives by their own name",
        r"all[-_]?reduce|all[-_]?gather|reduce[-_]?scatter|all[-_]?to[-_]?all|all2all"
        r"|collective[-_]?permute|send[-_]?recv",
    ),
)
"""What the pattern recognises, and the regular expression on the lower-case name."""

_ANY = re.compile("|".join(f"(?:{pattern})" for _, pattern in COMMUNICATION_PATTERNS))


@lru_cache(maxsize=65536)
def is_communication(name: str) -> bool:
    """Whether a kernel of this name moves data between devices."""
    return _ANY.search(name.lower()) is not None
