"""Where a step goes, as words and bars that need no JavaScript."""

from workbench.figures.breakdown import is_host, ordered, profiled_text, whole_text
from workbench.figures.palette import category
from workbench.pages.escape import escape, visible
from workbench.pages.table import Column, Table
from workbench.pages.view import Breakdown
from workbench.units import NOT_MEASURED, share_text, time_text

_BAR = 24
_DOUBTS = {
    "times": "not certain: this profile fails its own checks",
    "causes": "causes of idle are not certain: this profile fails its own checks",
}


def parts_html(breakdown: Breakdown) -> str:
    """A row a part: name, bar, share, time; work as full bars, idle as thin ones."""
    measured = {name: ns for name, ns in breakdown.parts_ns.items() if ns is not None}
    if breakdown.total_ns <= 0 or not any(measured.values()):
        return f'<p class="wb-quiet">{escape(breakdown.label)}: {NOT_MEASURED}</p>'
    host = is_host(measured)
    parts = ordered(measured, breakdown.total_ns)
    longest = max(part.ns for part in parts)
    rows = []
    for part in parts:
        look = category(part.name)
        thin = " wb-idle" if look.idle and not host else ""
        hatched = " wb-hatched" if look.hatched else ""
        width = 100 * part.ns / longest
        rows.append(
            f"<tr><td>{escape(part.label)}</td>"
            f'<td class="wb-track"><span class="wb-part{thin}{hatched}" '
            f'style="width:{width:.1f}%;background-color:{look.colour}"></span></td>'
            f'<td class="wb-number">{share_text(part.ns / breakdown.total_ns)}</td>'
            f'<td class="wb-number">{time_text(part.ns / (breakdown.steps or 1))}</td></tr>'
        )
    missing = _missing(breakdown)
    note = f'<p class="wb-quiet">{escape(missing)}</p>' if missing else ""
    caption = f"<caption>{escape(_caption(breakdown))}</caption>"
    return (
        f'<div class="wb-scroll" tabindex="0"><table class="wb-parts">{caption}'
        f"<tbody>{''.join(rows)}</tbody></table></div>{note}"
    )


def parts_text(breakdown: Breakdown) -> str:
    """The same for a terminal."""
    measured = {name: ns for name, ns in breakdown.parts_ns.items() if ns is not None}
    if breakdown.total_ns <= 0 or not any(measured.values()):
        return f"{visible(breakdown.label)}: {NOT_MEASURED}"
    parts = ordered(measured, breakdown.total_ns)
    longest = max(part.ns for part in parts)
    width = max(len(part.label) for part in parts)
    lines = [visible(_caption(breakdown))]
    for part in parts:
        bar = "█" * max(1, round(_BAR * part.ns / longest))
        share = share_text(part.ns / breakdown.total_ns)
        time = time_text(part.ns / (breakdown.steps or 1))
        lines.append(f"  {visible(part.label):{width}}  {bar:{_BAR}}  {share:>6}  {time:>8}")
    missing = _missing(breakdown)
    if missing:
        lines.append(f"  {visible(missing)}")
    return "\n".join(lines)


def parts_table(breakdown: Breakdown) -> Table:
    """Every part with its exact share, also those that a chart draws together."""
    per = breakdown.steps or 1
    total = breakdown.total_ns
    rows = tuple(
        (
            category(name).label,
            None if ns is None or total <= 0 else ns / total,
            None if ns is None else ns / per,
            ns,
        )
        for name, ns in breakdown.parts_ns.items()
    )
    columns = (
        Column(name="part"),
        Column(name="share of the step" if breakdown.steps else "share", kind="share"),
        Column(name="time per step" if breakdown.steps else "time", kind="time"),
        Column(name="together, ns" if breakdown.steps else "ns", kind="count"),
    )
    return Table(caption=_caption(breakdown), columns=columns, rows=rows)


def _caption(breakdown: Breakdown) -> str:
    whole = whole_text(breakdown.total_ns, breakdown.steps, breakdown.of_steps)
    return f"{breakdown.label}: {whole}, {profiled_text(breakdown.overhead)}"


def _missing(breakdown: Breakdown) -> str:
    """What these parts do not tell: what a failed check leaves open, and what was not measured."""
    names = [category(name).label for name, ns in breakdown.parts_ns.items() if ns is None]
    said = [_DOUBTS[breakdown.doubt]] if breakdown.doubt else []
    if names:
        said.append(f"{NOT_MEASURED}: {', '.join(names)}")
    return " · ".join(said)
