"""``budget.toml``: how much worse each metric may become, and what it may be at most."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.errors import GateError
from workbench.gate.metrics import BY_NAME, Metric

LEVEL = 0.01
"""Of a hundred gates over unchanged code, at most one may fail."""
KEYS = ("allow", "at_most", "at_least", "ignore_below", "off")

_QUANTITY = re.compile(r"\s*([0-9]+(?:[._][0-9]+)*(?:[eE][-+]?[0-9]+)?)\s*(\S*)\s*$")
_UNITS: dict[str, dict[str, float]] = {
    "time": {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9},
    "seconds": {"ms": 1e-3, "s": 1.0, "min": 60.0},
    "bytes": {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30},
    "rate": {"": 1.0, "/s": 1.0},
    "count": {"": 1.0},
    "times": {"": 1.0},
}


@dataclass(frozen=True, kw_only=True)
class Rule:
    """What a budget says of one metric; ``None``: as :mod:`workbench.gate.metrics` has it."""

    allow: float | None = None
    at_most: float | None = None
    at_least: float | None = None
    ignore_below: float | None = None
    off: bool = False


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The level of a gate, and its rules by name of the metric."""

    level: float = LEVEL
    rules: Mapping[str, Rule] = field(default_factory=dict)

    def rule(self, metric: Metric) -> Rule:
        """What it says of a metric."""
        return self.rules.get(metric.name, Rule())

    @property
    def absolute(self) -> bool:
        """Whether anything can be judged without a baseline."""
        return any(r.at_most is not None or r.at_least is not None for r in self.rules.values())


def read_budget(path: str | Path) -> Budget:
    """Read a budget.

    A table a metric, with ``allow = "5 %"``, ``at_most = "12 ms"``, ``at_least = 500``,
    ``ignore_below = "10 us"`` or ``off = true``; and ``[gate]`` with ``level = 0.01``.

    Raises:
        GateError: It cannot be read, or says something that nobody can judge.
    """
    path = Path(path)
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise GateError(f"the budget {path} cannot be read ({error.strerror}).") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise GateError(f"the budget {path.name} is no TOML: {error}.") from error
    return budget_of(found, where=path.name)


def budget_of(found: Mapping[str, Any], *, where: str = "the budget") -> Budget:
    """A budget from plain data: see :func:`read_budget`."""
    level: Any = LEVEL
    rules = {}
    for name, table in found.items():
        if not isinstance(table, Mapping):
            raise GateError(f"{where}: {name} must be a table, such as [{name}].")
        if name == "gate":
            _known(table, ("level",), where, name)
            level = table.get("level", LEVEL)
        elif name in BY_NAME:
            rules[name] = _rule(table, BY_NAME[name], where)
        else:
            raise GateError(f"{where}: no metric is called {name}; there are {', '.join(BY_NAME)}.")
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 0.5:
        raise GateError(f"{where}: level={level!r} must lie between 0 and 0.5, such as 0.01.")
    return Budget(level=float(level), rules=rules)


def _rule(table: Mapping[str, Any], metric: Metric, where: str) -> Rule:
    _known(table, KEYS, where, metric.name)
    off = table.get("off", False)
    if not isinstance(off, bool):
        raise GateError(f"{where}: {metric.name}.off={off!r} must be true or false.")
    limits = {
        key: _quantity(table[key], metric, f"{where}: {metric.name}.{key}")
        for key in ("at_most", "at_least", "ignore_below")
        if key in table
    }
    allow = _share(table["allow"], f"{where}: {metric.name}.allow") if "allow" in table else None
    return Rule(allow=allow, off=off, **limits)


def _known(table: Mapping[str, Any], keys: tuple[str, ...], where: str, name: str) -> None:
    for key in table:
        if key not in keys:
            raise GateError(f"{where}: [{name}] has no {key!r}; there are {', '.join(keys)}.")


def _share(value: Any, what: str) -> float:
    if isinstance(value, str) and value.strip().endswith("%"):
        try:
            value = float(value.strip()[:-1]) / 100
        except ValueError:
            value = None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 100:
        raise GateError(f'{what} must be a share such as "5 %" or 0.05.')
    return float(value)


def _quantity(value: Any, metric: Metric, what: str) -> float:
    """A number with a unit, in the metric's own unit."""
    units = _UNITS[metric.unit]
    text = f"{value}" if isinstance(value, int | float) and not isinstance(value, bool) else value
    found = _QUANTITY.match(text) if isinstance(text, str) else None
    if found is None or found[2] not in units:
        shown = ", ".join(unit or "none" for unit in units)
        raise GateError(
            f'{what}={value!r} must be a number with a unit ({shown}), such as "12 ms".'
        )
    return float(found[1].replace("_", "")) * units[found[2]]
