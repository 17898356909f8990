"""The timeline as a piece of a page: it works without a kernel, and tells without a script.

The same script and the same columns as the widget's stand in the page. Where scripts do not run, a
table of lanes, each with a strip of pixels, stays.
"""

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.errors import RunError
from workbench.pages.escape import escape, visible
from workbench.pages.timeline.assets import stylesheet, waking_script
from workbench.pages.timeline.headline import headline
from workbench.pages.timeline.labels import KNOWN, NAMES
from workbench.pages.timeline.scene import Scene, Track
from workbench.pages.timeline.shorten import shorten
from workbench.pages.timeline.strips import strip
from workbench.units import bytes_text, count_text, share_text, time_text

NOTEBOOK_BYTES = 500_000
"""What a timeline may add to a saved notebook."""
REPORT_BYTES = 6_000_000
"""What it may add to a report."""
LEAST_BYTES = 100_000
MOST_LANES = 24
_MARGIN = 2_000
_NO_WIDGET = (
    "needs the widget, and this is a page, as papermill and nbconvert get it: leave the cell out "
    "there, or ask for run.timeline(static=False)."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class StaticTimeline:
    """A timeline for pages without a kernel; shows itself in notebooks and prints as a table."""

    scene: Scene
    most_bytes: int = NOTEBOOK_BYTES
    """How large it may be; of more events neighbours are drawn together, and it says so."""

    @property
    def selection(self) -> None:
        """Nothing: what is selected on a page is not told to Python."""
        return None

    def go_to(self, start_us: float, end_us: float) -> None:
        """Refused: a page shows the whole recording until somebody moves it."""
        raise RunError(f"go_to({start_us:g}, {end_us:g}) {_NO_WIDGET}")

    def summary(self, span_us: Any = None) -> Any:
        """Refused: a page sums up what is selected on it by itself."""
        raise RunError(f"summary() {_NO_WIDGET}")

    def html(self) -> str:
        """The fragment: style, data, overview and script."""
        title = escape(self.scene.title)
        if not len(self.scene):
            return f"<p>The trace of {title} holds no event to draw.</p>"
        plain = self.overview()
        around = f"<style>{stylesheet()}</style>", f"<script>{waking_script()}</script>"
        left = self.most_bytes - _MARGIN - sum(len(part.encode()) for part in (plain, *around))
        made = shorten(self.scene, max(left, LEAST_BYTES // 4) * 3 // 4)
        data = base64.b64encode(made.data).decode("ascii")
        return (
            f"{around[0]}"
            f'<div data-wb-timeline="waiting" role="group" aria-label="Timeline of {title}">'
            f'<div class="wbt-plain">{plain}</div>'
            f'<script type="application/octet-stream">{data}</script></div>{around[1]}'
        )

    def overview(self) -> str:
        """The lanes as a table with a strip each; what views without scripts show."""
        scene = self.scene
        shown = scene.tracks[:MOST_LANES]
        pairs = zip((None, *shown[:-1]), shown, strict=True)
        rows = "".join(_head(before, each) + _row(scene, each) for before, each in pairs)
        left = len(scene.tracks) - len(shown)
        more = f"<p>and {count_text(left)} more lanes</p>" if left > 0 else ""
        notes = "".join(f"<p>{escape(note)}</p>" for note in scene.notes)
        return (
            f'<p class="wbt-headline">{escape(headline(scene))}</p>'
            f"<table><caption>Timeline of {escape(scene.title)}: "
            f"{time_text(scene.end - scene.start)}, {count_text(len(scene))} events</caption>"
            '<thead><tr><th scope="col">lane</th><th scope="col">from start to end</th>'
            '<th scope="col">events</th><th scope="col">filled</th></tr></thead>'
            f"<tbody>{rows}</tbody></table>{more}{_idle_table(scene)}{notes}"
        )

    def text(self) -> str:
        """The lanes as lines for a terminal."""
        scene = self.scene
        head = (
            f"Timeline of {visible(scene.title)}: {time_text(scene.end - scene.start)}, "
            f"{count_text(len(scene))} events in {len(scene.tracks)} lanes"
        )
        lines = [
            f"  {visible(_name(each)):48.48} {count_text(len(each)):>10}  {_filled(scene, each):>6}"
            for each in scene.tracks[:MOST_LANES]
        ]
        return "\n".join([visible(headline(scene)), head, *lines, *map(visible, scene.notes)])

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": self.text()}


def check_bytes(most_bytes: int) -> int:
    """The size that was asked for, if a timeline can be made so small.

    Raises:
        RunError: It cannot.
    """
    if most_bytes < LEAST_BYTES:
        raise RunError(
            f"most_bytes={most_bytes} leaves no room: script and overview alone take about "
            f"{bytes_text(LEAST_BYTES)}; give more."
        )
    return most_bytes


def _name(track: Track) -> str:
    return f"{track.group} · {track.name}" if track.group else track.name


def _filled(scene: Scene, track: Track) -> str:
    top = int(track.dur[track.depth == 0].sum())
    return share_text(min(1.0, top / max(scene.end - scene.start, 1)))


def _head(before: Track | None, track: Track) -> str:
    """A line over the first lane of a group."""
    if not track.group or (before is not None and before.group == track.group):
        return ""
    return f'<tr><th scope="rowgroup" colspan="4">{escape(track.group)}</th></tr>'


def _row(scene: Scene, track: Track) -> str:
    share = _filled(scene, track)
    alt = escape(f"{_name(track)}: filled {share} of the time")
    return (
        f'<tr><th scope="row">{escape(track.name)}</th>'
        f'<td><img src="{strip(scene, track)}" alt="{alt}" width="640" height="14"></td>'
        f"<td>{count_text(len(track))}</td><td>{share}</td></tr>"
    )


def _idle_table(scene: Scene) -> str:
    """Idle time by cause, of every device that is drawn."""
    category = np.array([code for _, code in scene.labels.pairs()], np.int64)
    rows = []
    for track in scene.tracks:
        if track.kind != "idle":
            continue
        times = np.bincount(category[track.label], track.dur, len(NAMES))
        for code in np.argsort(-times).tolist():
            if times[code] > 0:
                share = share_text(times[code] / max(int(times.sum()), 1))
                rows.append(
                    f'<tr><th scope="row">{escape(track.group)}</th>'
                    f"<td>{escape(KNOWN[NAMES[code]].label)}</td>"
                    f"<td>{time_text(times[code])}</td><td>{share}</td></tr>"
                )
    if not rows:
        return ""
    return (
        "<table><caption>Idle time of devices by cause, over the whole recording</caption>"
        '<thead><tr><th scope="col">device</th><th scope="col">cause</th>'
        '<th scope="col">time</th><th scope="col">of the idle time</th></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )
