/** Pointer and keyboard over the live charts: cursor, zoom, pause. */

import { frameOf } from "./chart.js";
import { linear } from "./scale.js";

/** @typedef {import("./charts.js").Charts} Charts */

/** @param {Charts} charts @param {import("./charts.js").Pane} pane */
export function pointing(charts, { canvas, figure }) {
  const seconds = (/** @type {PointerEvent | MouseEvent} */ event) => {
    const box = canvas.getBoundingClientRect();
    const frame = frameOf(box.width, box.height);
    return linear(charts.domain(), [frame.left, frame.right]).back(event.clientX - box.left);
  };
  canvas.addEventListener("pointermove", (event) => {
    charts.hover = seconds(event);
    if (charts.drag) charts.drag[1] = charts.hover;
    charts.ask();
  });
  canvas.addEventListener("pointerleave", () => {
    if (!charts.drag) charts.hover = null;
    charts.ask();
  });
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    charts.drag = [seconds(event), seconds(event)];
  });
  canvas.addEventListener("pointerup", () => drop(charts));
  canvas.addEventListener("pointercancel", () => {
    charts.drag = null;
  });
  canvas.addEventListener("dblclick", () => charts.show(Infinity));
  figure.addEventListener("keydown", (event) => {
    if (press(charts, event.key)) event.preventDefault();
  });
}

/** A dragged range becomes what is shown. @param {Charts} charts */
function drop(charts) {
  const range = charts.drag;
  charts.drag = null;
  if (!range) return;
  const [from, to] = [Math.min(...range), Math.max(...range)];
  const [low, high] = charts.domain();
  if (to - from > (high - low) / 100) charts.pin([from, to]);
  charts.ask();
}

/** @param {Charts} charts @param {string} key @returns {boolean} whether the key means something here */
function press(charts, key) {
  const [from, to] = charts.domain();
  const [middle, half] = [charts.hover ?? (from + to) / 2, (to - from) / 2];
  if (key === "+" || key === "=") charts.pin([middle - half / 2, middle + half / 2]);
  else if (key === "-") charts.pin([middle - half * 2, middle + half * 2]);
  else if (key === "0") charts.show(Infinity);
  else if (key === " ") charts.toggle();
  else if (key === "Escape" && charts.hover !== null) charts.hover = null;
  else if (key === "ArrowLeft" || key === "ArrowRight") {
    const way = key === "ArrowLeft" ? -1 : 1;
    charts.hover = Math.min(to, Math.max(from, (charts.hover ?? to) + (way * half) / 50));
  } else return false;
  charts.ask();
  return true;
}
