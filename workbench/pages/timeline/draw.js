/**
 * Draws the visible lanes. Every row becomes one line of pixels (`coverRow`); the lines are put
 * into a small image at once and stretched to the rows' heights, which costs the same for ten
 * events as for a million. Names and outlines come on top, where there is room for them.
 */

import { coverRow, eventAt, eventsIn } from "./rows.js";
import { SHADES } from "./theme.js";

/** @typedef {import("./decode.js").Scene} Scene */
/** @typedef {import("./layout.js").Layout} Layout */
/** @typedef {import("./layout.js").Line} Line */
/** @typedef {import("./scales.js").Span} Span */

/**
 * @typedef {object} Picture  What is to be drawn.
 * @property {Scene} scene
 * @property {Layout} layout
 * @property {Span} span
 * @property {number} width
 * @property {number} height
 * @property {number} scroll
 * @property {number} ratio  Pixels of the screen for one of CSS.
 * @property {import("./theme.js").Theme} theme
 * @property {import("./theme.js").Shades} shades
 * @property {import("./search.js").Found | null} found
 * @property {number} chosen  The selected event, or -1.
 * @property {number} hovered
 * @property {{from: number, to: number} | null} range
 * @property {number[]} related  Events joined to the selected one by arrows.
 */

/** A column with any work at all is drawn at least so strongly: nothing that ran is invisible. */
const FAINTEST = 0.28;
/** But for gaps, whose faint floor would look like waiting everywhere. */
const FAINTEST_GAP = 0.1;
const DIMMED = 0.22;
/** From this width on, in CSS pixels, an event has a name and an edge. */
const NAMED = 26;
const LETTERS = "abcdefghijklmnopqrstuvwxyz::_0123456789";
/** Above and below the band of a gap. */
const THIN_GAP = 5;

export class Painter {
  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    this.strip = document.createElement("canvas");
    this.stripPen = /** @type {CanvasRenderingContext2D} */ (this.strip.getContext("2d"));
    /** @type {ImageData | null} */
    this.image = null;
    this.letter = 6;
    this.cover = new Float32Array(0);
    this.kind = new Int16Array(0);
    this.event = new Int32Array(0);
  }

  /** @param {Picture} p */
  draw(p) {
    const columns = Math.max(1, Math.round(p.width * p.ratio));
    const tall = Math.max(1, Math.round(p.height * p.ratio));
    if (this.canvas.width !== columns || this.canvas.height !== tall) {
      this.canvas.width = columns;
      this.canvas.height = tall;
    }
    if (this.cover.length !== columns) {
      this.cover = new Float32Array(columns);
      this.kind = new Int16Array(columns);
      this.event = new Int32Array(columns);
    }
    const { pen } = this;
    pen.setTransform(p.ratio, 0, 0, p.ratio, 0, 0);
    pen.clearRect(0, 0, p.width, p.height);
    const shown = p.layout.lines.filter(
      (line) => line.top + line.height > p.scroll && line.top < p.scroll + p.height,
    );
    this.ground(p, shown);
    const rows = shown.filter((line) => line.kind === "row");
    pen.font = `11px ${p.theme.font}`;
    this.letter = pen.measureText(LETTERS).width / LETTERS.length;
    this.rows(p, rows, columns);
    for (const line of rows) this.names(p, line);
    for (const line of shown) if (line.kind === "counter") this.counter(p, line);
    this.over(p);
  }

  /** Time to x. @param {Picture} p @param {number} at */
  x(p, at) {
    return ((at - p.span.from) / p.span.length) * p.width;
  }

  /** Group heads, edges of steps, and the gaps of a device behind its streams.
   * @param {Picture} p @param {Line[]} shown */
  ground(p, shown) {
    const { pen } = this;
    const all = p.scene.tracks.filter((track) => track.kind === "steps");
    const steps = all.length === 1 ? all[0].rows[0] : null; // ranks have steps of their own
    if (steps) {
      const [a, b] = eventsIn(steps, p.span.from, p.span.to);
      pen.fillStyle = p.theme.line;
      if (b - a < p.width / 8) {
        for (let i = a; i < b; i += 1) {
          pen.fillRect(Math.round(this.x(p, p.scene.start[i])), 0, 1, p.height);
        }
        if (b > a) pen.fillRect(Math.round(this.x(p, p.scene.end[b - 1])), 0, 1, p.height);
      }
    }
    for (const line of shown) {
      const y = line.top - p.scroll;
      if (line.kind === "group") {
        pen.fillStyle = p.theme.line;
        pen.globalAlpha = 0.45;
        pen.fillRect(0, y + 2, p.width, line.height - 4);
        pen.globalAlpha = 1;
      } else if (line.row?.track.kind === "stream") this.gaps(p, line, y);
    }
  }

  /** A breath of the cause's colour where the device waits. @param {Picture} p @param {Line} line
   * @param {number} y */
  gaps(p, line, y) {
    const own = line.row?.track;
    const row = p.scene.tracks.find(
      (each) => each.kind === "idle" && each.rank === own?.rank && each.device === own.device,
    )?.rows[0];
    if (!row) return;
    const [a, b] = eventsIn(row, p.span.from, p.span.to);
    if (b - a > p.width / 2) return;
    const { pen } = this;
    pen.globalAlpha = p.theme.dark ? 0.22 : 0.16;
    for (let i = a; i < b; i += 1) {
      const from = this.x(p, p.scene.start[i]);
      const wide = this.x(p, p.scene.end[i]) - from;
      if (wide < 2) continue;
      pen.fillStyle = p.shades.css[p.scene.kindOf[p.scene.label[i]] * SHADES];
      pen.fillRect(from, y, wide, line.height);
    }
    pen.globalAlpha = 1;
  }

  /** @param {Picture} p @param {Line[]} lines @param {number} columns */
  rows(p, lines, columns) {
    if (lines.length === 0) return;
    if (!this.image || this.image.width !== columns || this.image.height < lines.length) {
      this.image = new ImageData(columns, lines.length + 8);
      this.strip.width = columns;
      this.strip.height = lines.length + 8;
    }
    const { image, pen } = this;
    image.data.fill(0);
    lines.forEach((line, at) => this.pixels(p, line, image.data, at * columns * 4));
    this.stripPen.putImageData(image, 0, 0, 0, 0, columns, lines.length);
    pen.imageSmoothingEnabled = false;
    lines.forEach((line, at) => {
      const thin = line.row?.track.kind === "idle";
      const gap = thin ? THIN_GAP : 1;
      const top = Math.round((line.top - p.scroll + gap) * p.ratio) / p.ratio;
      const high = line.height - 2 * gap;
      pen.drawImage(this.strip, 0, at, columns, 1, 0, top, p.width, high);
    });
  }

  /** One line of pixels. @param {Picture} p @param {Line} line @param {Uint8ClampedArray} out
   * @param {number} at */
  pixels(p, line, out, at) {
    const row = /** @type {import("./decode.js").Row} */ (line.row);
    const { cover, kind, event } = this;
    const { scene, shades } = p;
    const perColumn = p.span.length / cover.length;
    coverRow(row, p.span.from, perColumn, cover, kind, event);
    const edge = 4 * p.ratio;
    const faintest = row.track.kind === "idle" ? FAINTEST_GAP : FAINTEST;
    for (let x = 0, i = at; x < cover.length; x += 1, i += 4) {
      const of = kind[x];
      if (of < 0) continue;
      const whole = event[x];
      const plain = whole < 0 || row.track.kind === "idle";
      const shade = of * SHADES + (plain ? 0 : scene.nameOf[scene.label[whole]] % SHADES);
      let strength = Math.max(faintest, cover[x]);
      if (p.found) strength *= this.hit(p, row, x, whole, perColumn) ? 1 : DIMMED;
      const first = whole >= 0 && (x === 0 || event[x - 1] !== whole);
      const dark = first && (scene.end[whole] - scene.start[whole]) / perColumn > edge ? 0.72 : 1;
      out[i] = shades.rgb[shade * 3] * dark;
      out[i + 1] = shades.rgb[shade * 3 + 1] * dark;
      out[i + 2] = shades.rgb[shade * 3 + 2] * dark;
      out[i + 3] = 255 * strength;
    }
  }

  /** Whether a column holds what is looked for. @param {Picture} p
   * @param {import("./decode.js").Row} row @param {number} x @param {number} whole
   * @param {number} perColumn */
  hit(p, row, x, whole, perColumn) {
    const matches = /** @type {import("./search.js").Found} */ (p.found).label;
    if (whole >= 0) return matches[p.scene.label[whole]] === 1;
    const low = p.span.from + x * perColumn;
    const [a, b] = eventsIn(row, low, low + perColumn);
    for (let i = a; i < Math.min(b, a + 64); i += 1) if (matches[p.scene.label[i]]) return true;
    return false;
  }

  /** Names, and stripes over what nobody knows. @param {Picture} p @param {Line} line */
  names(p, line) {
    const row = /** @type {import("./decode.js").Row} */ (line.row);
    const thin = row.track.kind === "idle";
    const { scene } = p;
    const { pen } = this;
    const y = line.top - p.scroll;
    pen.font = `11px ${p.theme.font}`;
    pen.textBaseline = "middle";
    const perPixel = p.span.length / p.width;
    let at = p.span.from;
    for (let i = eventsIn(row, at, p.span.to)[0]; i < row.last && scene.start[i] < p.span.to; ) {
      const wide = (scene.end[i] - scene.start[i]) / perPixel;
      if (wide >= (thin ? 6 : NAMED)) {
        const from = Math.max(0, this.x(p, scene.start[i]));
        const room = Math.min(p.width, this.x(p, scene.end[i])) - from;
        if (scene.categories[scene.kindOf[scene.label[i]]].hatched) {
          const gap = thin ? THIN_GAP : 1;
          this.hatch(p, from, y + gap, room, line.height - 2 * gap);
        }
        if (!thin && room >= NAMED) this.name(p, i, from, y + line.height / 2, room);
        at = scene.end[i];
        i += 1;
      } else {
        // The next one wide enough ends so much later: leap over what is too small for a name.
        at = scene.end[i] + perPixel;
        i = leap(row, i, at);
      }
    }
  }

  /** @param {Picture} p @param {number} i @param {number} from @param {number} middle
   * @param {number} room */
  name(p, i, from, middle, room) {
    const { scene } = p;
    const label = scene.label[i];
    if (p.found && !p.found.label[label]) return;
    const letters = Math.floor((room - 12) / this.letter);
    let text = scene.names[scene.nameOf[label]];
    if (letters < 2) return;
    if (text.length > letters) text = `${text.slice(0, Math.max(1, letters - 1))}…`;
    const shade = scene.nameOf[label] % SHADES;
    this.pen.fillStyle = p.shades.text[scene.kindOf[label] * SHADES + shade];
    this.pen.fillText(text, from + 4, middle + 0.5);
  }

  /** @param {Picture} p @param {number} x @param {number} y @param {number} wide
   * @param {number} high */
  hatch(p, x, y, wide, high) {
    const { pen } = this;
    pen.save();
    pen.beginPath();
    pen.rect(x, y, wide, high);
    pen.clip();
    pen.strokeStyle = p.theme.ground;
    pen.lineWidth = 1.5;
    pen.beginPath();
    for (let at = x - high - (x % 6); at < x + wide; at += 6) {
      pen.moveTo(at, y + high);
      pen.lineTo(at + high, y);
    }
    pen.stroke();
    pen.restore();
  }

  /** @param {Picture} p @param {Line} line */
  counter(p, line) {
    const each = /** @type {import("./decode.js").Counter} */ (line.counter);
    const { pen } = this;
    const foot = line.top - p.scroll + line.height - 2;
    const high = line.height - 6;
    const most = each.unit === "percent" ? 100 : each.high || 1;
    pen.beginPath();
    pen.moveTo(0, foot);
    let level = foot;
    let last = 0;
    for (let i = 0; i < each.at.length; i += 1) {
      const x = this.x(p, each.at[i]);
      const y = foot - (Math.max(0, each.value[i]) / most) * high;
      if (x >= 0 && x <= p.width) {
        pen.lineTo(x, level);
        pen.lineTo(x, y);
        last = x;
      } else if (x < 0) pen.lineTo(0, y);
      if (x > p.width) break;
      level = y;
    }
    pen.lineTo(Math.max(last, p.width), level);
    pen.lineTo(p.width, foot);
    pen.fillStyle = p.theme.quiet;
    pen.globalAlpha = 0.25;
    pen.fill();
    pen.globalAlpha = 1;
    pen.strokeStyle = p.theme.quiet;
    pen.lineWidth = 1;
    pen.stroke();
  }

  /** The range, what is selected and hovered, and arrows. @param {Picture} p */
  over(p) {
    const { pen } = this;
    if (p.range) {
      const from = this.x(p, p.range.from);
      const to = this.x(p, p.range.to);
      pen.globalAlpha = 0.12;
      pen.fillStyle = p.theme.focus;
      pen.fillRect(from, 0, to - from, p.height);
      pen.globalAlpha = 1;
      pen.fillRect(Math.round(from), 0, 1, p.height);
      pen.fillRect(Math.round(to), 0, 1, p.height);
    }
    if (p.hovered >= 0 && p.hovered !== p.chosen) this.outline(p, p.hovered, p.theme.ink, 1);
    for (const each of p.related) this.arrow(p, each);
    for (const each of p.related) this.outline(p, each, p.theme.ink, 1.5);
    if (p.chosen >= 0) this.outline(p, p.chosen, p.theme.ink, 2);
  }

  /** Where an event is drawn; null where its row is folded away. @param {Picture} p
   * @param {number} event */
  box(p, event) {
    const line = p.layout.lines.find(
      (each) => each.row && event >= each.row.first && event < each.row.last,
    );
    if (!line) return null;
    const from = this.x(p, p.scene.start[event]);
    const wide = Math.max(2, this.x(p, p.scene.end[event]) - from);
    return { from, wide, top: line.top - p.scroll, height: line.height };
  }

  /** @param {Picture} p @param {number} event @param {string} colour @param {number} thick */
  outline(p, event, colour, thick) {
    const box = this.box(p, event);
    if (!box) return;
    const from = Math.max(-4, box.from);
    const to = Math.min(p.width + 4, box.from + box.wide);
    this.pen.strokeStyle = colour;
    this.pen.lineWidth = thick;
    this.pen.strokeRect(from, box.top + 0.5, Math.max(1, to - from), box.height - 1);
  }

  /** From the earlier to the later of two events. @param {Picture} p @param {number} other */
  arrow(p, other) {
    const [first, second] =
      p.scene.start[other] <= p.scene.start[p.chosen] ? [other, p.chosen] : [p.chosen, other];
    const a = this.box(p, first);
    const b = this.box(p, second);
    if (!a || !b) return;
    const down = b.top >= a.top;
    const x1 = a.from + Math.min(a.wide / 2, 6);
    const y1 = down ? a.top + a.height : a.top;
    const x2 = b.from + Math.min(b.wide / 2, 2);
    const y2 = down ? b.top : b.top + b.height;
    const { pen } = this;
    const bend = (y2 - y1) / 2;
    pen.strokeStyle = p.theme.ink;
    pen.fillStyle = p.theme.ink;
    pen.lineWidth = 1.25;
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.bezierCurveTo(x1, y1 + bend, x2, y2 - bend, x2, y2);
    pen.stroke();
    const tip = down ? -6 : 6;
    pen.beginPath();
    pen.moveTo(x2, y2);
    pen.lineTo(x2 - 3.5, y2 + tip);
    pen.lineTo(x2 + 3.5, y2 + tip);
    pen.fill();
  }

  /** The event under a point, or -1. @param {Picture} p @param {number} x @param {number} y */
  pick(p, x, y) {
    const line = p.layout.lines.find(
      (each) => y + p.scroll >= each.top && y + p.scroll < each.top + each.height,
    );
    if (!line?.row) return -1;
    const perPixel = p.span.length / p.width;
    return eventAt(line.row, p.span.from + x * perPixel, 3 * perPixel);
  }
}

/** The next event that ends after `at`, found by doubling. @param {import("./decode.js").Row} row
 * @param {number} i @param {number} at */
function leap(row, i, at) {
  const { end } = row.scene;
  let step = 1;
  let low = i + 1;
  while (low + step < row.last && end[low + step] <= at) {
    low += step;
    step *= 2;
  }
  let high = Math.min(low + step, row.last);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (end[middle] > at) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The whole scene in a strip: for each device what works, and below it what it waits for.
 * @param {CanvasRenderingContext2D} pen @param {Scene} scene
 * @param {import("./theme.js").Shades} shades @param {number} width @param {number} height
 * @param {number} ratio */
export function overview(pen, scene, shades, width, height, ratio) {
  const columns = Math.max(1, Math.round(width * ratio));
  pen.canvas.width = columns;
  pen.canvas.height = Math.round(height * ratio);
  const bands = overviewBands(scene);
  const high = pen.canvas.height / Math.max(bands.length, 1);
  const cover = new Float32Array(columns);
  const kind = new Int16Array(columns);
  const event = new Int32Array(columns);
  bands.forEach((tracks, at) => {
    const idle = tracks.some((track) => track.kind === "idle") ? 0.3 : 0;
    for (const track of tracks) {
      const gap = track.kind === "idle";
      const top = Math.round((at + (gap ? 1 - idle : 0)) * high);
      const tall = Math.max(1, Math.round(high * (gap ? idle : 1 - idle)) - 1);
      coverRow(track.rows[0], scene.from, (scene.to - scene.from) / columns, cover, kind, event);
      for (let x = 0; x < columns; x += 1) {
        if (kind[x] < 0) continue;
        pen.globalAlpha = Math.max(gap ? FAINTEST_GAP : FAINTEST, cover[x]);
        pen.fillStyle = shades.css[kind[x] * SHADES];
        pen.fillRect(x, top, 1, tall);
      }
    }
  });
  pen.globalAlpha = 1;
}

/** The tracks of each band: of a device, else of the loop, else of the threads.
 * @param {Scene} scene @returns {import("./decode.js").Track[][]} */
export function overviewBands(scene) {
  const devices = new Map();
  for (const track of scene.tracks) {
    if (track.kind !== "idle" && track.kind !== "stream") continue;
    const key = `${track.rank} ${track.device}`;
    devices.set(key, [...(devices.get(key) ?? []), track]);
  }
  if (devices.size > 0) return [...devices.values()].slice(0, 8);
  for (const kind of ["loop", "thread"]) {
    const found = scene.tracks.filter((track) => track.kind === kind);
    if (found.length > 0) return found.slice(0, 4).map((track) => [track]);
  }
  return [];
}
