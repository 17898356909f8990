/** Pointer and keyboard: what dragging, wheel and keys do to a timeline. */

import { choose, chooseRange, clear, fitSelection } from "./choosing.js";
import { neighbour, searchFor, toMatch } from "./finding.js";
import { hover } from "./tip.js";

/** @typedef {import("./view.js").Timeline} Timeline */
/** @typedef {(target: EventTarget, type: string, act: (event: any) => void,
 *   options?: AddEventListenerOptions) => void} On */

const CLICK = 4;

/** @param {Timeline} view @param {On} on */
export function pointers(view, on) {
  /** @type {{x: number, y: number, from: number, scroll: number, what: string} | null} */
  let drag = null;
  let moved = false;
  const box = document.createElement("div");
  box.className = "wbt-box";
  box.hidden = true;
  view.stage.append(box);

  const place = (/** @type {PointerEvent} */ event, /** @type {Element} */ element) => {
    const edge = element.getBoundingClientRect();
    return { x: event.clientX - edge.left, y: event.clientY - edge.top };
  };

  on(view.canvas, "pointerdown", (event) => {
    if (event.button !== 0) return;
    const { x, y } = place(event, view.canvas);
    const what = event.shiftKey ? "select" : event.altKey ? "zoom" : view.mode;
    drag = { x, y, from: view.time(x), scroll: view.body.scrollTop, what };
    moved = false;
    view.canvas.setPointerCapture(event.pointerId);
  });
  on(view.canvas, "pointermove", (event) => {
    const { x, y } = place(event, view.canvas);
    if (!drag) {
      hover(view, x, y);
      return;
    }
    moved ||= Math.abs(x - drag.x) > CLICK || Math.abs(y - drag.y) > CLICK;
    if (!moved) return;
    hover(view, -1, -1);
    if (drag.what === "pan") {
      const by = drag.from - view.time(x);
      view.span.show(view.span.from + by, view.span.to + by);
      view.body.scrollTop = drag.scroll - (y - drag.y);
      view.paint();
    } else drawBox(view, box, drag, x, y);
  });
  const end = (/** @type {PointerEvent} */ event) => {
    const started = drag;
    drag = null;
    box.hidden = true;
    if (!started) return;
    const { x, y } = place(event, view.canvas);
    if (!moved) {
      const hit = view.painter.pick(view.picture(), x, y);
      if (hit >= 0 || view.chosen >= 0 || view.range) choose(view, hit);
      return;
    }
    const low = view.time(Math.min(x, started.x));
    const high = view.time(Math.max(x, started.x));
    if (started.what === "zoom") view.show(low, high, 0);
    if (started.what === "select") chooseRange(view, { from: low, to: high });
  };
  on(view.canvas, "pointerup", end);
  on(view.canvas, "pointercancel", () => {
    drag = null;
    box.hidden = true;
  });
  on(view.canvas, "pointerleave", () => hover(view, -1, -1));
  on(view.canvas, "dblclick", () => fitSelection(view));
  on(
    view.canvas,
    "wheel",
    (event) => {
      const { x } = place(event, view.canvas);
      if (event.ctrlKey || event.metaKey) view.zoom(1.0025 ** event.deltaY, x);
      else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        view.pan((event.deltaX || event.deltaY) / view.width);
      } else return; // scrolls the lanes, then the page
      event.preventDefault();
    },
    { passive: false },
  );
  ruler(view, on, place);
  strip(view, on, place);
}

/** Dragging along the ruler selects a stretch. @param {Timeline} view @param {On} on
 * @param {(event: PointerEvent, element: Element) => {x: number, y: number}} place */
function ruler(view, on, place) {
  let from = NaN;
  on(view.ruler, "pointerdown", (event) => {
    from = view.time(place(event, view.ruler).x);
    view.ruler.setPointerCapture(event.pointerId);
  });
  on(view.ruler, "pointermove", (event) => {
    if (Number.isNaN(from)) return;
    const to = view.time(place(event, view.ruler).x);
    view.range = { from: Math.min(from, to), to: Math.max(from, to) };
    view.chosen = -1;
    view.paint();
  });
  on(view.ruler, "pointerup", (event) => {
    const to = view.time(place(event, view.ruler).x);
    const wide = Math.abs(view.x(to) - view.x(from));
    if (wide > CLICK) chooseRange(view, { from: Math.min(from, to), to: Math.max(from, to) });
    from = NaN;
  });
}

/** Dragging the overview moves what is shown. @param {Timeline} view @param {On} on
 * @param {(event: PointerEvent, element: Element) => {x: number, y: number}} place */
function strip(view, on, place) {
  let held = false;
  const move = (/** @type {PointerEvent} */ event) => {
    const share = place(event, view.strip).x / view.width;
    const middle = view.scene.from + share * (view.scene.to - view.scene.from);
    const half = view.span.length / 2;
    view.span.show(middle - half, middle + half);
    view.paint();
  };
  on(view.strip, "pointerdown", (event) => {
    held = true;
    view.strip.setPointerCapture(event.pointerId);
    move(event);
  });
  on(view.strip, "pointermove", (event) => held && move(event));
  on(view.strip, "pointerup", () => {
    held = false;
  });
}

/** @param {Timeline} view @param {HTMLElement} box @param {{x: number, y: number, what: string}} drag
 * @param {number} x @param {number} y */
function drawBox(view, box, drag, x, y) {
  const whole = drag.what === "select";
  box.hidden = false;
  box.style.left = `${Math.min(x, drag.x)}px`;
  box.style.width = `${Math.abs(x - drag.x)}px`;
  box.style.top = `${view.body.scrollTop + (whole ? 0 : Math.min(y, drag.y))}px`;
  box.style.height = `${whole ? view.height : Math.abs(y - drag.y)}px`;
}

/** @param {Timeline} view @param {On} on */
export function keys(view, on) {
  /** @type {Record<string, () => void>} */
  const acts = {
    w: () => view.zoom(1 / 1.4),
    s: () => view.zoom(1.4),
    a: () => view.pan(-0.15),
    d: () => view.pan(0.15),
    arrowleft: () => view.pan(-0.15),
    arrowright: () => view.pan(0.15),
    arrowup: () => view.body.scrollBy(0, -40),
    arrowdown: () => view.body.scrollBy(0, 40),
    "+": () => view.zoom(1 / 1.4),
    "-": () => view.zoom(1.4),
    0: () => view.fit(),
    f: () => fitSelection(view),
    "[": () => neighbour(view, "before"),
    "]": () => neighbour(view, "after"),
    "{": () => neighbour(view, "around"),
    "}": () => neighbour(view, "inside"),
    escape: () => clear(view),
  };
  on(view.root, "keydown", (event) => {
    if (event.ctrlKey || event.metaKey) return;
    if (event.target === view.query) {
      typed(view, event);
      return;
    }
    if (event.key === "/") {
      view.query.focus();
      view.query.select();
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    if (event.target !== view.canvas) return;
    const act = acts[event.key.toLowerCase()];
    if (!act) return;
    act();
    event.preventDefault();
    event.stopPropagation();
  });
}

/** @param {Timeline} view @param {KeyboardEvent} event */
function typed(view, event) {
  event.stopPropagation();
  if (event.key === "Enter") {
    toMatch(view, event.shiftKey ? -1 : 1);
    event.preventDefault();
  } else if (event.key === "Escape") {
    view.query.value = "";
    searchFor(view, "");
    view.canvas.focus();
    event.preventDefault();
  }
}
