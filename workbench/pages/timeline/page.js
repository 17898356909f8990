/** The timeline in a static page: every one that waits, from the data that stands beside it. */

import { decode, fromBase64, gunzip } from "./decode.js";
import { mount } from "./view.js";

/** @param {HTMLElement} place */
async function wake(place) {
  place.dataset.wbTimeline = "drawing";
  const data = place.querySelector("script[type='application/octet-stream']");
  const plain = /** @type {HTMLElement | null} */ (place.querySelector(".wbt-plain"));
  try {
    const scene = decode(await gunzip(fromBase64(data?.textContent ?? "")));
    const live = document.createElement("div");
    place.prepend(live);
    // For scripts of the page's own, such as our benchmark.
    /** @type {any} */ (place).timeline = mount(live, scene, null);
    if (plain) plain.hidden = true;
    place.dataset.wbTimeline = "drawn";
  } catch (error) {
    place.dataset.wbTimeline = "failed";
    const note = document.createElement("p");
    note.textContent = `Only the overview can be drawn here (${/** @type {Error} */ (error).message}).`;
    place.prepend(note);
  }
}

export function wakeAll() {
  for (const each of document.querySelectorAll('[data-wb-timeline="waiting"]')) {
    wake(/** @type {HTMLElement} */ (each));
  }
}

wakeAll();
