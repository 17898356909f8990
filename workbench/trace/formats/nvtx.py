"""What the names of NVTX ranges tell: torch's ``emit_nvtx`` puts operators into them."""

import re
from functools import lru_cache
from typing import NamedTuple

from workbench.trace.table import Kind

_TOLD = re.compile(r"(.+?), (?:seq|op_id|sizes|input_op_ids|stashed seq) = .*", re.S)
_SEQUENCE = re.compile(r", seq = (\d{1,18})(?!\d)")


class Range(NamedTuple):
    """A range's own name, kind, and the sequence number that joins forward to backward."""

    name: str
    kind: Kind
    sequence: int


@lru_cache(maxsize=65536)
def range_of(text: str) -> Range:
    """What a range of this text is: an operator, or one that a user set."""
    told = _TOLD.fullmatch(text)
    if told is None:
        return Range(text, Kind.ANNOTATION, -1)
    name, sequence = told.group(1), _SEQUENCE.search(text)
    number = int(sequence.group(1)) if sequence else -1
    operator = number >= 0 or "::" in name
    return Range(name, Kind.OPERATOR if operator else Kind.ANNOTATION, number)
