/** What stands around the lanes: native controls, the colours, the keys, and the lanes as a table. */

import { fitSelection } from "./choosing.js";
import { lanesTable } from "./details.js";
import { button, element, patch } from "./elements.js";
import { fitStep, toMatch } from "./finding.js";

/** @typedef {import("./view.js").Timeline} Timeline */

/** @param {Timeline} view */
export function toolbarOf(view) {
  const bar = element("div", "wbt-bar-top");
  view.query.type = "search";
  view.query.placeholder = "Search names ( / )";
  view.query.setAttribute("aria-label", "Search names");
  const find = element("div", "wbt-group");
  const before = button("‹", "Match before", () => toMatch(view, -1));
  const after = button("›", "Next match", () => toMatch(view, 1));
  find.append(view.query, before, after, view.count);
  const zoom = element("div", "wbt-group");
  zoom.append(
    button("−", "Zoom out", () => view.zoom(1.6)),
    button("+", "Zoom in", () => view.zoom(1 / 1.6)),
    button("All", "Show everything (0)", () => view.fit()),
    button("Step", "Show one step", () => fitStep(view)),
    button("Selection", "Show the selection (F)", () => fitSelection(view)),
  );
  const modes = element("div", "wbt-group");
  modes.setAttribute("role", "group");
  modes.setAttribute("aria-label", "What dragging does");
  view.modes = {
    pan: button("Move", "Drag to move", () => view.setMode("pan")),
    select: button("Select", "Drag to select a stretch (or Shift and drag)", () =>
      view.setMode("select"),
    ),
    zoom: button("Zoom", "Drag a box to zoom into (or Alt and drag)", () => view.setMode("zoom")),
  };
  modes.append(...Object.values(view.modes));
  bar.append(find, modes, zoom);
  view.setMode("pan");
  return bar;
}

/** @param {Timeline} view */
export function legendOf(view) {
  const made = element("ul", "wbt-legend");
  made.setAttribute("aria-label", "Colours");
  const seen = new Map();
  const { scene } = view;
  for (const track of scene.tracks) {
    for (let i = track.first; i < track.last; i += 1) {
      const kind = scene.kindOf[scene.label[i]];
      const idle = track.kind === "idle";
      const key = scene.categories[kind].colour + (idle ? "idle" : "");
      if (!seen.has(key) || (seen.get(key).idle && !idle)) seen.set(key, { kind, idle });
    }
  }
  for (const { kind, idle } of seen.values()) {
    const item = element("li");
    const { label } = scene.categories[kind];
    item.append(patch(scene.categories[kind]), idle ? `idle: ${label}` : label);
    if (idle) item.classList.add("wbt-idle");
    made.append(item);
  }
  return made;
}

export function helpOf() {
  const made = element("details", "wbt-more");
  made.append(element("summary", "", "Keys"));
  const dl = element("dl");
  for (const [key, what] of [
    ["W S, Ctrl + wheel", "closer, further"],
    ["A D, ← →", "earlier, later"],
    ["↑ ↓", "scroll the lanes"],
    ["0", "everything"],
    ["F", "the selection, else the selected event"],
    ["[ ]", "event before, event after in its row"],
    ["{ }", "what encloses it, what lies inside"],
    ["/ then Enter", "search, next match"],
    ["Shift + drag, Alt + drag", "select a stretch, zoom into a box"],
    ["Esc", "clear"],
  ]) {
    dl.append(element("dt", "", key), element("dd", "", what));
  }
  made.append(dl);
  return made;
}

/** @param {Timeline} view */
export function twinOf(view) {
  const made = /** @type {HTMLDetailsElement} */ (element("details", "wbt-more"));
  made.append(element("summary", "", "The lanes as a table"));
  made.addEventListener("toggle", () => {
    if (!made.open || made.querySelector("table")) return;
    const scroll = element("div", "wbt-scroll");
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "The lanes as a table");
    scroll.append(lanesTable(view.scene));
    made.append(scroll);
  });
  return made;
}
