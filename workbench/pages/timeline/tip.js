/** What the pointer stands on, in a line beside it. */

import { categoryOf, counterText, nameOf } from "./details.js";
import { patch } from "./elements.js";
import { RULER } from "./frame.js";
import { timeText } from "../numbers.js";
import { instantText } from "./scales.js";

/** @typedef {import("./view.js").Timeline} Timeline */

/** What lies under the pointer, in a line beside it. @param {Timeline} view @param {number} x
 * @param {number} y in the canvas; negative: nothing */
export function hover(view, x, y) {
  view.pointerX = x;
  const event = x < 0 ? -1 : view.painter.pick(view.picture(), x, y);
  if (event !== view.hovered) {
    view.hovered = event;
    view.paint();
  }
  const words = x < 0 ? "" : wordsAt(view, event, x, y);
  view.tip.replaceChildren();
  view.tip.hidden = words === "";
  if (words === "") return;
  if (event >= 0) view.tip.append(patch(categoryOf(view.scene, event)));
  view.tip.append(words);
  const left = view.names.offsetWidth + x;
  const flip = left > view.root.clientWidth * 0.6;
  view.tip.style.left = flip ? "auto" : `${left + 14}px`;
  view.tip.style.right = flip ? `${view.root.clientWidth - left + 14}px` : "auto";
  view.tip.style.top = `${view.stripHeight + RULER + y + 18}px`;
}

/** @param {Timeline} view @param {number} event @param {number} x @param {number} y */
function wordsAt(view, event, x, y) {
  if (event >= 0) {
    const length = timeText(view.scene.end[event] - view.scene.start[event]);
    const name = nameOf(view.scene, event);
    return `${name.length > 80 ? `${name.slice(0, 79)}…` : name} · ${length}`;
  }
  const line = view.layout.lines.find(
    (each) => y + view.body.scrollTop >= each.top && y + view.body.scrollTop < each.top + each.height,
  );
  if (!line?.counter) return "";
  return `${line.counter.name}: ${counterText(line.counter, view.time(x))} at ${instantText(view.time(x))}`;
}
