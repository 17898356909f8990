/** The names beside the lanes. */

import { button, element } from "./elements.js";
import { arrange, keyOf } from "./layout.js";

/** @typedef {import("./view.js").Timeline} Timeline */

const THREAD = "thread ";

/** Names beside the lanes; a thread's opens and folds its rows. @param {Timeline} view */
export function nameLanes(view) {
  view.names.replaceChildren();
  for (const line of view.layout.lines) {
    if (line.kind !== "group") continue;
    const head = element("div", "wbt-name wbt-of", line.text ?? "");
    head.title = line.text ?? "";
    head.style.top = `${line.top}px`;
    head.style.height = `${line.height}px`;
    view.names.append(head);
  }
  for (const block of view.layout.blocks) {
    const name = block.track?.name ?? block.counter?.name ?? "";
    const made =
      block.track && block.hidden > 0
        ? folder(view, block.track, name, block)
        : spelled("div", "wbt-name", name);
    if (!(made instanceof HTMLButtonElement)) made.title = block.track?.note || name;
    made.style.top = `${block.top}px`;
    made.style.height = `${Math.max(block.height, 14)}px`;
    view.names.append(made);
  }
  view.stage.style.height = `${view.layout.height}px`;
  view.names.style.height = `${view.layout.height}px`;
}

/**
 * A name of which only what tells threads apart is shown where it is narrow.
 * @param {string} tag @param {string} kind @param {string} name
 */
function spelled(tag, kind, name) {
  const [word, rest] = name.startsWith(THREAD) ? [THREAD, name.slice(THREAD.length)] : ["", name];
  const made = element(tag, kind, rest);
  if (word) made.prepend(element("span", "wbt-word", word));
  return made;
}

/** @param {Timeline} view @param {import("./decode.js").Track} track @param {string} name
 * @param {import("./layout.js").Block} block */
function folder(view, track, name, block) {
  const made = button("", name, () => openTrack(view, track, !block.open));
  made.removeAttribute("aria-label");
  made.append(spelled("span", "", name));
  made.className = block.open ? "wbt-name wbt-open" : "wbt-name wbt-shut";
  made.setAttribute("aria-expanded", String(block.open));
  made.title = block.open ? "Fold the deeper rows away" : `Show ${block.hidden} deeper rows`;
  return made;
}

/** @param {Timeline} view @param {import("./decode.js").Track} track @param {boolean} open */
function openTrack(view, track, open) {
  view.opened.set(keyOf(track), open);
  view.layout = arrange(view.scene, view.opened);
  nameLanes(view);
  const again = [...view.names.querySelectorAll("button")].find(
    (each) => each.textContent === track.name,
  );
  again?.focus();
  view.resize();
}
