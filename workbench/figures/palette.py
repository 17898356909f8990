"""The one table of colours: a category has the same colour in every view and in every page.

Colours are for areas and marks, never for text. ``to_json`` hands the same table to JavaScript.

Four colours (``LOW_ON_WHITE``) cannot reach the 3:1 that WCAG 1.4.11 asks of graphics on a white
background: they are fixed by the colour-blind safe set they come from. Everything drawn in them
therefore has its name and number written beside it, and the views outline them.
"""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Category:
    """How one category of time is called and drawn."""

    label: str
    colour: str
    hatched: bool = False
    idle: bool = False
    """A cause of device idle: drawn as a thin band, the absence of work, never as work."""
    waits: str = ""
    """What the device waits for, to follow the word "waits"."""


_UNKNOWN = "#8C8C8C"
_OPERATORS = "#009E73"
_COMMUNICATION = "#D55E00"

CATEGORIES: dict[str, Category] = {
    # work on a device
    "compute": Category(label="compute", colour="#0072B2"),
    "communication": Category(label="communication", colour=_COMMUNICATION),
    "exposed_communication": Category(label="exposed communication", colour=_COMMUNICATION),
    "exposed_communication_wait": Category(
        label="communication (wait for ranks)", colour=_COMMUNICATION, hatched=True
    ),
    "exposed_communication_transfer": Category(
        label="communication (transfer)", colour=_COMMUNICATION
    ),
    "memory": Category(label="copies", colour="#CC79A7"),
    "exposed_memory": Category(label="exposed copies", colour="#CC79A7"),
    # causes of device idle
    "input": Category(label="input", colour="#E69F00", idle=True, waits="for data"),
    "host_operators": Category(
        label="host operators", colour=_OPERATORS, idle=True, waits="for operators on the host"
    ),
    "host_python": Category(
        label="host Python", colour="#8A8A00", idle=True, waits="for Python on the host"
    ),
    "host_other": Category(
        label="other host code", colour="#6F7F63", idle=True, waits="for other host code"
    ),
    "synchronization": Category(
        label="synchronization", colour="#56B4E9", idle=True, waits="after synchronization"
    ),
    "allocation": Category(
        label="allocation", colour="#8C564B", idle=True, waits="for memory allocation"
    ),
    "compilation": Category(
        label="compilation", colour="#6B6ECF", idle=True, waits="for compilation"
    ),
    "graph_capture": Category(
        label="graph capture", colour="#4B7A9E", idle=True, waits="for graph capture"
    ),
    "kernel_loading": Category(
        label="kernel loading", colour="#9467BD", idle=True, waits="for kernels to load"
    ),
    "garbage_collection": Category(
        label="garbage collection", colour="#E377C2", idle=True, waits="for garbage collection"
    ),
    "profiler": Category(label="profiler", colour="#B05A7A", idle=True, waits="for the profiler"),
    "launch": Category(label="launch", colour="#BDBDBD", idle=True, waits="for kernel launches"),
    "kernel_gap": Category(
        label="kernel gap", colour="#949494", idle=True, waits="between kernels"
    ),
    "unknown": Category(
        label="unknown", colour=_UNKNOWN, hatched=True, idle=True, waits="for unknown reasons"
    ),
    # parts of a step on the CPU
    "forward": Category(label="forward", colour="#0A93B8"),
    "backward": Category(label="backward", colour="#3F6FC0"),
    "optimizer": Category(label="optimizer", colour="#8058B8"),
    "other_operators": Category(label="other operators", colour=_OPERATORS),
}

LOW_ON_WHITE = frozenset({"input", "synchronization", "garbage_collection", "launch"})
"""Categories whose fixed colour stays under 3:1 on white."""

STALLS: dict[str, Category] = {
    "storage": Category(label="storage", colour="#7B61C9", waits="for storage"),
    "decode": Category(label="decode and transform", colour="#C27C00", waits="for decoding"),
    "collate": Category(label="collate", colour="#A8552B", waits="for collate"),
    "transfer": Category(
        label="transfer between processes", colour="#22868C", waits="for transfer"
    ),
    "pin": Category(label="pinning", colour="#5E7F9B", waits="for pinning"),
    "copy": Category(label="copy to the device", colour="#CC79A7", waits="for copies"),
    "startup": Category(
        label="start of loader and workers", colour="#6F8A2A", waits="for start-up"
    ),
    "starvation": Category(
        label="workers busy with other batches",
        colour="#C27C00",
        hatched=True,
        waits="for a free worker",
    ),
    "oversubscription": Category(
        label="no processor free", colour="#C8504F", waits="for a free processor"
    ),
    "other": Category(label="anything else", colour=_UNKNOWN, waits="for anything else"),
}
"""Parts of the exposed wait for input: what the batch that was waited for was in."""

INK = "#797979"
"""Text and outlines of a figure that cannot know its background: 4.3:1 on white and on #111.

No grey reaches 4.5:1 on both (the best possible is 4.35:1), so our own pages replace it by the
page's text colour (``pages/page.css``).
"""

GRID = "rgba(128,128,128,0.25)"
TOOLTIP = "#222222"
TOOLTIP_TEXT = "#FFFFFF"


def category(name: str) -> Category:
    """The category of that name; an unlisted one is shown under its own name as unknown."""
    known = CATEGORIES.get(name)
    if known is not None:
        return known
    return Category(label=name.replace("_", " "), colour=_UNKNOWN, hatched=True)


def stall(name: str) -> Category:
    """The part of the wait for input of that name."""
    return STALLS[name]


def luminance(colour: str) -> float:
    """Relative luminance of ``#RRGGBB``, 0 to 1 (WCAG 2.2)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Contrast ratio of two colours, 1 to 21 (WCAG 2.2)."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def ink_on(colour: str) -> str:
    """Black or white, whichever reads better on that colour."""
    return max(("#000000", "#FFFFFF"), key=lambda ink: contrast(ink, colour))


def to_json() -> dict[str, dict[str, object]]:
    """The table for JavaScript: label, colour, hatched, idle by category."""
    return {
        name: {
            "label": each.label,
            "colour": each.colour,
            "hatched": each.hatched,
            "idle": each.idle,
        }
        for name, each in CATEGORIES.items()
    }
