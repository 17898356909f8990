"""What torch's C++ warned of in ranks: it writes to their log, past the warnings of Python."""

import re
from pathlib import Path

LOG = "log"
_WARNED = re.compile(
    r"^(?:\[rank\d+\]:)?\[W\S* [^\]]*?\] Warning: (?P<text>.+?)(?: \(function .*\))?$", re.MULTILINE
)
_MOST, _MOST_BYTES = 20, 1_000_000


def log_warnings(folder: Path) -> list[str]:
    """Distinct warnings of torch in the log of a job, in the words of a Run.

    Args:
        folder: The job's.
    """
    with (folder / LOG).open("rb") as log:
        text = log.read(_MOST_BYTES).decode("utf-8", errors="replace")
    told = [" ".join(found["text"].split()) for found in _WARNED.finditer(text)]
    return [f"UserWarning: {one}" for one in dict.fromkeys(told)][:_MOST]
