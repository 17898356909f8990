"""What reading had to mend, cut or leave out, and how that is told."""

from collections import Counter

from workbench.errors import TraceError
from workbench.trace.packed import Damage
from workbench.trace.table import Violation

_WRONG_CHECKSUM = (
    "The file was unpacked to its end, but what came out does not fit its checksum: some names or "
    "numbers may be wrong. Copy or download the file again."
)
_UNREADABLE_SHARE = 0.01
_GIVE_UP_AFTER = 200


class Notes:
    """Collects what happened while one file is read."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._repairs: Counter[str] = Counter()
        self._first_repair: int | None = None
        self._unreadable = 0
        self._first_unreadable: tuple[int, str] | None = None
        self._truncated: tuple[int, str] | None = None
        self._others: list[Violation] = []

    def repaired(self, what: str, offset: int, count: int = 1) -> None:
        """Something was mended with certainty."""
        if count:
            self._repairs[what] += count
            self._first_repair = min(offset, self._first_repair or offset)

    def unreadable(self, offset: int, found: bytes, read: int) -> None:
        """One event could not be read; too many of them are an error."""
        self._unreadable += 1
        if self._first_unreadable is None:
            shown = found[:60].decode("utf-8", "replace")
            self._first_unreadable = offset, " ".join(shown.split())
        if self._unreadable > max(_GIVE_UP_AFTER, read):
            raise self.error()

    def truncated(self, offset: int, why: str) -> None:
        """The text ends too early."""
        self._truncated = self._truncated or (offset, why)

    def packing(self, offset: int, damage: Damage) -> None:
        """What is wrong with how the text is packed; if it ends too early, that is the reason."""
        if damage.stopped:
            self._truncated = (self._truncated or (offset, damage.stopped))[0], damage.stopped
        if damage.checksum:
            self.add(Violation(code="wrong_checksum", message=_WRONG_CHECKSUM))
        if damage.mended and not damage.stopped:
            message = f"Damaged, and not needed to read everything: {damage.mended}."
            self.add(Violation(code="repaired_json", message=message))

    def passed_over(self, count: int) -> None:
        """Elements of the list of events that are no objects."""
        message = f"{count:,} elements of the list of events are no events and were passed over."
        self._others.append(Violation(code="unreadable_records", message=message, count=count))

    def add(self, violation: Violation) -> None:
        """Anything else, as it is to be told."""
        self._others.append(violation)

    @property
    def end(self) -> str:
        """Where and why the text ends too early; empty when it does not."""
        if self._truncated is None:
            return ""
        offset, why = self._truncated
        return f"The file ends at byte {offset:,}: {why}."

    def error(self) -> TraceError:
        """The error for a file that is damaged beyond repair."""
        offset, shown = self._first_unreadable or (0, "")
        return TraceError(
            f"{self.source} is not valid JSON, and too much of it is damaged to be sure of the "
            f"rest: {self._unreadable:,} records cannot be read, the first at byte {offset:,} "
            f"({shown!r}). Export the trace again; names with quotes or backslashes in "
            "record_function are a common cause."
        )

    def violations(self, events: int) -> tuple[Violation, ...]:
        """Everything that was noted, for ``Trace.violations``.

        Raises:
            TraceError: More than one record in a hundred could not be read.
        """
        told = []
        if self._unreadable > max(1, _UNREADABLE_SHARE * (events + self._unreadable)):
            raise self.error()
        if self._truncated:
            message = f"{self.end} Everything before it was read."
            told.append(Violation(code="truncated", message=message))
        if self._repairs:
            what = ", ".join(f"{name} ({n:,})" for name, n in self._repairs.most_common())
            message = "The file is not valid JSON and was mended, first at byte "
            message += f"{self._first_repair or 0:,}: {what}."
            count = sum(self._repairs.values())
            told.append(Violation(code="repaired_json", message=message, count=count))
        if self._unreadable and self._first_unreadable:
            offset, shown = self._first_unreadable
            message = (
                f"Damaged records were left out ({self._unreadable:,}), the first at byte "
                f"{offset:,} ({shown!r})."
            )
            share = self._unreadable / (events + self._unreadable)
            told.append(
                Violation(
                    code="unreadable_records", message=message, count=self._unreadable, share=share
                )
            )
        return (*told, *self._others)
