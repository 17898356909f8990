/** What stands above the lanes: the ruler, and the overview with what is shown of it. */

import { overview } from "./overview.js";
import { ticks } from "./scales.js";

/** @typedef {import("./view.js").Timeline} Timeline */

/** Height of the ruler. */
export const RULER = 22;

/** @param {Timeline} view */
export function drawRuler(view) {
  const pen = /** @type {CanvasRenderingContext2D} */ (view.ruler.getContext("2d"));
  view.ruler.width = Math.round(view.width * view.ratio);
  view.ruler.height = Math.round(RULER * view.ratio);
  pen.scale(view.ratio, view.ratio);
  pen.font = `11px ${view.theme.font}`;
  pen.textBaseline = "middle";
  for (const tick of ticks(view.span.from, view.span.to, view.width / 110)) {
    const x = view.x(tick.at);
    pen.fillStyle = view.theme.line;
    pen.fillRect(Math.round(x), RULER - 6, 1, 6);
    pen.fillStyle = view.theme.quiet;
    if (x + 4 + pen.measureText(tick.text).width < view.width) {
      pen.fillText(tick.text, x + 4, RULER / 2);
    }
  }
  if (view.range) {
    pen.fillStyle = view.theme.focus;
    const from = Math.max(0, view.x(view.range.from));
    pen.fillRect(from, RULER - 3, Math.min(view.width, view.x(view.range.to)) - from, 3);
  }
}

/** @param {Timeline} view */
export function drawOverview(view) {
  const pen = /** @type {CanvasRenderingContext2D} */ (view.whole.getContext("2d"));
  overview(pen, view.scene, view.shades, view.width, view.stripHeight - 4, view.ratio);
}

/** The overview with what is shown of it. @param {Timeline} view */
export function drawFrame(view) {
  const pen = /** @type {CanvasRenderingContext2D} */ (view.strip.getContext("2d"));
  view.strip.width = Math.round(view.width * view.ratio);
  view.strip.height = Math.round(view.stripHeight * view.ratio);
  pen.scale(view.ratio, view.ratio);
  const share = view.scene.to - view.scene.from;
  const from = ((view.span.from - view.scene.from) / share) * view.width;
  const to = ((view.span.to - view.scene.from) / share) * view.width;
  if (view.whole.width > 0 && view.whole.height > 0) {
    pen.drawImage(view.whole, 0, 2, view.width, view.stripHeight - 4);
  }
  pen.globalAlpha = 0.66;
  pen.fillStyle = view.theme.ground;
  pen.fillRect(0, 0, Math.max(0, from), view.stripHeight);
  pen.fillRect(to, 0, Math.max(0, view.width - to), view.stripHeight);
  pen.globalAlpha = 1;
  pen.fillStyle = view.theme.focus;
  if (view.found) drawMarks(view, pen, share);
  pen.strokeStyle = view.theme.ink;
  const left = Math.max(0.75, from);
  pen.lineWidth = 1.5;
  pen.strokeRect(left, 0.75, Math.max(3, Math.min(view.width - 0.75, to) - left), view.stripHeight - 1.5);
}

/** Where the matches lie in the whole. @param {Timeline} view @param {CanvasRenderingContext2D} pen
 * @param {number} share */
function drawMarks(view, pen, share) {
  const { events } = /** @type {import("./search.js").Found} */ (view.found);
  const marked = new Uint8Array(Math.ceil(view.width) + 1);
  for (const event of events) {
    const x = ((view.scene.start[event] - view.scene.from) / share) * view.width;
    marked[Math.floor(x)] = 1;
  }
  marked.forEach((one, x) => one && pen.fillRect(x, view.stripHeight - 4, 1.5, 4));
}
