/** One chart on a canvas: lines with their spread, or parts stacked to a whole. */

import { bins, clockTicks, linear, ticks } from "./scale.js";
import { clockText } from "./clock.js";
import { isNumber } from "../../pages/numbers.js";

/**
 * @typedef {{name: string, label: string, colour: string, dash?: boolean,
 *   ys: ArrayLike<number>}} Series
 * @typedef {{xs: ArrayLike<number>, series: Series[], stacked: boolean, top: number,
 *   domain: [number, number], write(value: number): string, gap: number}} Drawing
 * @typedef {{at: number, label: string}} Mark
 * @typedef {{from: number, to: number}} Band
 * @typedef {{ink: string, quiet: string, line: string, ground: string, font: string}} Theme
 * @typedef {{left: number, right: number, top: number, bottom: number}} Frame
 */

export const LEFT = 64;
const RIGHT = 8;
const TOP = 18;
const BOTTOM = 20;

/** The theme in force, from an element that the stylesheet paints with it. @param {Element} probe */
export function themeOf(probe) {
  const style = getComputedStyle(probe);
  return {
    ink: style.color,
    quiet: style.borderTopColor,
    line: style.borderBottomColor,
    ground: style.backgroundColor,
    font: style.fontFamily,
  };
}

/** A number at an axis: round ones without their zeros. @param {string} text */
export function tickText(text) {
  return text.replace(/\.0+(?=\s|$)/, "").replace(/^0 .*/, "0");
}

/** Where the data is drawn. @param {number} width @param {number} height @returns {Frame} */
export function frameOf(width, height) {
  return { left: LEFT, right: width - RIGHT, top: TOP, bottom: height - BOTTOM };
}

/**
 * @param {CanvasRenderingContext2D} c @param {number} width @param {number} height
 * @param {Drawing} drawing @param {Mark[]} marks @param {Band[]} bands when a burst was recorded
 * @param {number | null} hover @param {Theme} theme
 */
export function draw(c, width, height, drawing, marks, bands, hover, theme) {
  const frame = frameOf(width, height);
  const x = linear(drawing.domain, [frame.left, frame.right]);
  const y = linear([0, drawing.top], [frame.bottom, frame.top]);
  c.clearRect(0, 0, width, height);
  c.font = `11px ${theme.font}`;
  drawAxes(c, frame, x, y, drawing, theme);
  c.save();
  c.beginPath();
  c.rect(frame.left, frame.top - 4, frame.right - frame.left, frame.bottom - frame.top + 4);
  c.clip();
  if (drawing.stacked) drawStack(c, drawing, x, y);
  else for (const one of drawing.series) drawLine(c, drawing, one, x, y, frame);
  c.restore();
  drawBands(c, bands, x, frame, theme);
  drawMarks(c, marks, x, frame, theme);
  if (hover !== null) drawCursor(c, drawing, hover, x, y, frame, theme);
}

/**
 * @param {CanvasRenderingContext2D} c @param {Frame} frame @param {import("./scale.js").Scale} x
 * @param {import("./scale.js").Scale} y @param {Drawing} drawing @param {Theme} theme
 */
function drawAxes(c, frame, x, y, drawing, theme) {
  c.lineWidth = 1;
  c.strokeStyle = theme.line;
  c.fillStyle = theme.quiet;
  c.textAlign = "right";
  c.textBaseline = "middle";
  const rows = Math.max(2, Math.floor((frame.bottom - frame.top) / 28));
  for (const value of ticks([0, drawing.top], rows)) {
    const at = Math.round(y.at(value)) + 0.5;
    c.globalAlpha = value === 0 ? 1 : 0.5;
    c.beginPath();
    c.moveTo(frame.left, at);
    c.lineTo(frame.right, at);
    c.stroke();
    c.globalAlpha = 1;
    c.fillText(tickText(drawing.write(value)), frame.left - 6, at);
  }
  c.textBaseline = "top";
  c.textAlign = "center";
  const columns = Math.max(2, Math.floor((frame.right - frame.left) / 72));
  for (const value of clockTicks(drawing.domain, columns)) {
    const at = x.at(value);
    const text = drawing.domain[1] - drawing.domain[0] < 4 ? `${value.toFixed(1)} s` : clockText(value);
    if (at > frame.left + 8 && at < frame.right - 8) c.fillText(text, at, frame.bottom + 6);
  }
}

/**
 * The mean of every pixel as a line, in front of the spread of what falls on it.
 * @param {CanvasRenderingContext2D} c @param {Drawing} drawing @param {Series} series
 * @param {import("./scale.js").Scale} x @param {import("./scale.js").Scale} y @param {Frame} frame
 */
function drawLine(c, drawing, series, x, y, frame) {
  const made = bins(drawing.xs, series.ys, x);
  c.strokeStyle = series.colour;
  c.fillStyle = series.colour;
  c.globalAlpha = 0.3;
  for (const bin of made) {
    const [high, low] = [y.at(bin.most), y.at(bin.least)];
    if (bin.count > 1) c.fillRect(bin.pixel - 0.5, high, 1, Math.max(1, low - high));
  }
  c.globalAlpha = 1;
  c.lineWidth = 1.5;
  c.setLineDash(series.dash ? [4, 3] : []);
  c.beginPath();
  made.forEach((bin, i) => {
    const previous = made[i - 1];
    const alone = !previous || bin.from - previous.to > drawing.gap;
    if (alone) c.moveTo(bin.pixel - 0.75, y.at(bin.mean));
    c.lineTo(alone ? bin.pixel + 0.75 : bin.pixel, y.at(bin.mean));
  });
  c.stroke();
  c.setLineDash([]);
  for (const bin of made) {
    if (bin.most <= drawing.top) continue; // beyond the scale: a mark at its upper edge
    c.beginPath();
    c.moveTo(bin.pixel, frame.top - 3);
    c.lineTo(bin.pixel + 3.5, frame.top + 3);
    c.lineTo(bin.pixel - 3.5, frame.top + 3);
    c.fill();
  }
}

/**
 * @param {CanvasRenderingContext2D} c @param {Drawing} drawing
 * @param {import("./scale.js").Scale} x @param {import("./scale.js").Scale} y
 */
function drawStack(c, drawing, x, y) {
  const columns = drawing.series.map((one) => bins(drawing.xs, one.ys, x, 2));
  const places = new Map();
  columns.forEach((column, i) => {
    for (const bin of column) {
      const place = places.get(bin.pixel) ?? { bin, parts: [] };
      place.parts[i] = bin.mean;
      places.set(bin.pixel, place);
    }
  });
  const ordered = [...places.values()].sort((a, b) => a.bin.pixel - b.bin.pixel);
  ordered.forEach(({ bin, parts }, i) => {
    const next = ordered[i + 1]?.bin;
    const joined = next && next.from - bin.to <= drawing.gap;
    const width = joined ? next.pixel - bin.pixel : 2;
    let below = 0;
    drawing.series.forEach((one, k) => {
      if (!isNumber(parts[k])) return;
      const [top, bottom] = [y.at(below + parts[k]), y.at(below)];
      c.fillStyle = one.colour;
      c.fillRect(bin.pixel - 1, top, width + 0.3, bottom - top);
      below += parts[k];
    });
  });
}

/**
 * Where a burst was recorded: its steps are not drawn, for the profiler made them longer.
 * @param {CanvasRenderingContext2D} c @param {Band[]} bands
 * @param {import("./scale.js").Scale} x @param {Frame} frame @param {Theme} theme
 */
function drawBands(c, bands, x, frame, theme) {
  c.fillStyle = theme.quiet;
  for (const band of bands) {
    const from = Math.max(frame.left, x.at(band.from));
    const to = Math.min(frame.right, Math.max(x.at(band.to), from + 2));
    if (to <= from || x.at(band.to) < frame.left) continue;
    c.globalAlpha = 0.18;
    c.fillRect(from, frame.top, to - from, frame.bottom - frame.top);
    c.globalAlpha = 1;
    c.beginPath(); // as on a recorder
    c.arc((from + to) / 2, frame.top - 6, 3.5, 0, 2 * Math.PI);
    c.fill();
  }
}

/**
 * @param {CanvasRenderingContext2D} c @param {Mark[]} marks
 * @param {import("./scale.js").Scale} x @param {Frame} frame @param {Theme} theme
 */
function drawMarks(c, marks, x, frame, theme) {
  c.textBaseline = "middle";
  c.textAlign = "center";
  for (const mark of marks) {
    const at = Math.round(x.at(mark.at)) + 0.5;
    if (at < frame.left || at > frame.right) continue;
    c.strokeStyle = theme.ink;
    c.lineWidth = 1;
    c.setLineDash([2, 3]);
    c.beginPath();
    c.moveTo(at, frame.top);
    c.lineTo(at, frame.bottom);
    c.stroke();
    c.setLineDash([]);
    const width = c.measureText(mark.label).width + 8;
    c.fillStyle = theme.ink;
    c.fillRect(at - width / 2, 1, width, 14);
    c.fillStyle = theme.ground;
    c.fillText(mark.label, at, 8.5);
  }
}

/**
 * @param {CanvasRenderingContext2D} c @param {Drawing} drawing @param {number} hover
 * @param {import("./scale.js").Scale} x @param {import("./scale.js").Scale} y
 * @param {Frame} frame @param {Theme} theme
 */
function drawCursor(c, drawing, hover, x, y, frame, theme) {
  const at = Math.round(x.at(drawing.xs[hover])) + 0.5;
  if (!(at >= frame.left && at <= frame.right)) return;
  c.strokeStyle = theme.quiet;
  c.lineWidth = 1;
  c.beginPath();
  c.moveTo(at, frame.top);
  c.lineTo(at, frame.bottom);
  c.stroke();
  if (drawing.stacked) return;
  for (const one of drawing.series) {
    const value = one.ys[hover];
    if (!isNumber(value)) continue;
    c.fillStyle = one.colour;
    c.beginPath();
    c.arc(at, y.at(Math.min(value, drawing.top)), 3, 0, 2 * Math.PI);
    c.fill();
  }
}
