"""The lanes as pictures that need no script: one strip of pixels a lane, as PNG.

JupyterLab's sanitiser takes scripts and inline SVG out of what it does not trust, but leaves tables
and images, so that a table of strips is what everybody sees.
"""

import base64
import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from workbench.analysis.intervals import covered_until, union
from workbench.pages.timeline.labels import KNOWN, NAMES
from workbench.pages.timeline.scene import Scene, Track

WIDTH = 640
FAINTEST = 0.28
"""As on the canvas: a column with any work is drawn at least so strongly."""

Pixels = NDArray[np.uint8]


def strip(scene: Scene, track: Track) -> str:
    """The first row of a track over the whole scene, as a data address."""
    edges = np.linspace(scene.start, scene.end, WIDTH + 1)
    first = np.flatnonzero(track.depth == 0)
    start, end = track.start[first], (track.start + track.dur)[first]
    category = np.array([code for _, code in scene.labels.pairs()])[track.label[first]]
    most = np.zeros(WIDTH)
    whole = np.zeros(WIDTH)
    pixels = np.zeros((1, WIDTH, 4), np.uint8)
    for code in np.unique(category).tolist():
        mine = category == code
        spans = union(start[mine], end[mine])
        share = np.diff(covered_until(spans, np.round(edges).astype(np.int64))) / np.diff(edges)
        whole += share
        leads = share > most
        most = np.maximum(most, share)
        pixels[0, leads, :3] = _rgb(KNOWN[NAMES[code]].colour)
    seen = whole > 0
    pixels[0, seen, 3] = (np.clip(whole[seen], FAINTEST, 1) * 255).astype(np.uint8)
    return "data:image/png;base64," + base64.b64encode(png(pixels)).decode("ascii")


def png(pixels: Pixels) -> bytes:
    """An image of red, green, blue and opacity, as a file (PNG, 8 bits a channel)."""
    height, width, _ = pixels.shape
    lines = np.zeros((height, 1 + 4 * width), np.uint8)
    lines[:, 1:] = pixels.reshape(height, 4 * width)
    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    parts = (
        (b"IHDR", head),
        (b"IDAT", zlib.compress(lines.tobytes(), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    whole = kind + data
    return struct.pack(">I", len(data)) + whole + struct.pack(">I", zlib.crc32(whole))


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)
