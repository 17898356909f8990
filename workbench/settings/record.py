"""What is recorded in a run, as one frozen record."""

from dataclasses import dataclass, fields
from typing import Any

from workbench.errors import SettingError
from workbench.settings.settings import Settings


@dataclass(frozen=True, kw_only=True)
class Record:
    """What is recorded beside operators and kernels; each costs time and disk.

    ``loader`` is not torch.profiler's: it says whether probes in the data loader tell what every
    worker did for every batch, for less than 2 % of a step.
    """

    shapes: bool = True
    stacks: bool = False
    memory: bool = False
    modules: bool = False
    loader: bool = True

    def __post_init__(self) -> None:
        for name, value in self.to_json().items():
            if not isinstance(value, bool):
                raise SettingError(f"{name}={value!r} must be True or False.")

    def to_json(self) -> dict[str, bool]:
        """A plain dictionary of these choices."""
        return {f.name: getattr(self, f.name) for f in fields(self)}


def check_records(settings: Any, record: Any) -> None:
    """Refuse what only looks like the records of this module, such as a plain dictionary.

    Raises:
        SettingError: Naming how to write it.
    """
    if settings is not None and not isinstance(settings, Settings):
        raise SettingError(
            f"settings={settings!r} is a {type(settings).__name__}; "
            "give a record such as wb.Settings(workers=2)."
        )
    if not isinstance(record, Record):
        raise SettingError(
            f"record={record!r} is a {type(record).__name__}; "
            "give a record such as wb.Record(shapes=True)."
        )
