/** Going from event to event: to a step, along a row, to what is searched for. */

import { go } from "./choosing.js";
import { nameOf } from "./details.js";
import { rowOf } from "./layout.js";
import { grouped, timeText } from "../numbers.js";
import { nextMatch, search } from "./search.js";

/** @typedef {import("./view.js").Timeline} Timeline */

/** Shows the step in the middle of the view; again: the next one. @param {Timeline} view */
export function fitStep(view) {
  const row = view.scene.tracks.find((track) => track.kind === "steps")?.rows[0];
  if (!row) {
    view.say("The trace marks no steps.");
    return;
  }
  const middle = (view.span.from + view.span.to) / 2;
  const { start, end } = view.scene;
  let at = row.first;
  while (at < row.last - 1 && end[at] <= middle) at += 1;
  const same = Math.abs(view.span.length / (end[at] - start[at]) - 1.08) < 0.01;
  if (same && at < row.last - 1) at += 1;
  view.show(start[at], end[at]);
  view.say(`${nameOf(view.scene, at)}: ${timeText(end[at] - start[at])}`);
}


/** @param {Timeline} view @param {string} text */
export function searchFor(view, text) {
  view.found = search(view.scene, text);
  view.match = -1;
  tellMatches(view);
  view.paint();
}

/** @param {Timeline} view */
function tellMatches(view) {
  const { found } = view;
  if (!found) {
    view.count.textContent = "";
    return;
  }
  const drawn = found.events.length;
  const which = view.match >= 0 ? `${grouped(view.match + 1)} of ` : "";
  const more =
    found.recorded > drawn ? ` (${grouped(found.recorded)} recorded, others drawn together)` : "";
  view.count.textContent = `${which}${grouped(drawn)} ${drawn === 1 ? "match" : "matches"}${more}`;
  if (view.match < 0) view.say(view.count.textContent);
}

/** Goes to the match before or after. @param {Timeline} view @param {number} step */
export function toMatch(view, step) {
  if (!view.found) {
    view.query.focus();
    return;
  }
  view.match = nextMatch(view.scene, view.found, view.match, step);
  if (view.match >= 0) go(view, view.found.events[view.match]);
  tellMatches(view);
}


/** Goes to the event before or after in its row, or around or inside it.
 * @param {Timeline} view @param {"before" | "after" | "around" | "inside"} where */
export function neighbour(view, where) {
  const { chosen, scene } = view;
  if (chosen < 0) {
    const row = view.layout.lines.find((line) => line.row)?.row;
    if (row) go(view, row.first);
    return;
  }
  const row = rowOf(scene, chosen);
  if (where === "before" && chosen > row.first) go(view, chosen - 1);
  else if (where === "after" && chosen < row.last - 1) go(view, chosen + 1);
  else if (where === "around" || where === "inside") {
    const other = row.track.rows[row.depth + (where === "inside" ? 1 : -1)];
    for (let i = other?.first ?? 0; other && i < other.last; i += 1) {
      const within =
        where === "inside"
          ? scene.start[i] >= scene.start[chosen] && scene.start[i] < scene.end[chosen]
          : scene.start[i] <= scene.start[chosen] && scene.end[i] > scene.start[chosen];
      if (within) {
        go(view, i);
        return;
      }
    }
    view.say(where === "inside" ? "Nothing lies inside." : "Nothing encloses it.");
  } else view.say("This is the last one in its row.");
}
