/** What is drawn over the lanes: the selected stretch, outlines, and arrows between events. */

/** @typedef {import("./draw.js").Picture} Picture */

/** Time to x. @param {Picture} p @param {number} at */
export function xOf(p, at) {
  return ((at - p.span.from) / p.span.length) * p.width;
}

/** The range, what is selected and hovered, and arrows.
 * @param {CanvasRenderingContext2D} pen @param {Picture} p */
export function drawOver(pen, p) {
  if (p.range) {
    const from = xOf(p, p.range.from);
    const to = xOf(p, p.range.to);
    pen.globalAlpha = 0.12;
    pen.fillStyle = p.theme.focus;
    pen.fillRect(from, 0, to - from, p.height);
    pen.globalAlpha = 1;
    pen.fillRect(Math.round(from), 0, 1, p.height);
    pen.fillRect(Math.round(to), 0, 1, p.height);
  }
  if (p.hovered >= 0 && p.hovered !== p.chosen) outline(pen, p, p.hovered, p.theme.ink, 1);
  for (const each of p.related) arrow(pen, p, each);
  for (const each of p.related) outline(pen, p, each, p.theme.ink, 1.5);
  if (p.chosen >= 0) outline(pen, p, p.chosen, p.theme.ink, 2);
}

/** Where an event is drawn; null where its row is folded away. @param {Picture} p
 * @param {number} event */
function boxOf(p, event) {
  const line = p.layout.lines.find(
    (each) => each.row && event >= each.row.first && event < each.row.last,
  );
  if (!line) return null;
  const from = xOf(p, p.scene.start[event]);
  const wide = Math.max(2, xOf(p, p.scene.end[event]) - from);
  return { from, wide, top: line.top - p.scroll, height: line.height };
}

/** @param {CanvasRenderingContext2D} pen @param {Picture} p @param {number} event
 * @param {string} colour @param {number} thick */
function outline(pen, p, event, colour, thick) {
  const box = boxOf(p, event);
  if (!box) return;
  const from = Math.max(-4, box.from);
  const to = Math.min(p.width + 4, box.from + box.wide);
  pen.strokeStyle = colour;
  pen.lineWidth = thick;
  pen.strokeRect(from, box.top + 0.5, Math.max(1, to - from), box.height - 1);
}

/** From the earlier to the later of two events.
 * @param {CanvasRenderingContext2D} pen @param {Picture} p @param {number} other */
function arrow(pen, p, other) {
  const [first, second] =
    p.scene.start[other] <= p.scene.start[p.chosen] ? [other, p.chosen] : [p.chosen, other];
  const a = boxOf(p, first);
  const b = boxOf(p, second);
  if (!a || !b) return;
  const down = b.top >= a.top;
  const x1 = a.from + Math.min(a.wide / 2, 6);
  const y1 = down ? a.top + a.height : a.top;
  const x2 = b.from + Math.min(b.wide / 2, 2);
  const y2 = down ? b.top : b.top + b.height;
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
