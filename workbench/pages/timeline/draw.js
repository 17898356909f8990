/**
 * Draws the visible lanes. Every row becomes one line of pixels (`coverRow`); the lines are put
 * into a small image at once and stretched to the rows' heights, which costs the same for ten
 * events as for a million. Names and outlines come on top, where there is room for them.
 */

import { drawOver, xOf } from "./marks.js";
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
export const FAINTEST = 0.28;
/** But for gaps, whose faint floor would look like waiting everywhere. */
export const FAINTEST_GAP = 0.1;
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
    drawOver(pen, p);
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
          pen.fillRect(Math.round(xOf(p, p.scene.start[i])), 0, 1, p.height);
        }
        if (b > a) pen.fillRect(Math.round(xOf(p, p.scene.end[b - 1])), 0, 1, p.height);
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
      const from = xOf(p, p.scene.start[i]);
      const wide = xOf(p, p.scene.end[i]) - from;
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
        const from = Math.max(0, xOf(p, scene.start[i]));
        const room = Math.min(p.width, xOf(p, scene.end[i])) - from;
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
      const x = xOf(p, each.at[i]);
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
