/** Selecting: an event or a stretch, what the panel below then says, and what the kernel is told. */

import { eventPanel, rangePanel, relatedTo, spoken } from "./details.js";
import { button, element } from "./elements.js";
import { arrange, keyOf, lineOf, rowOf } from "./layout.js";
import { nameLanes } from "./names.js";
import { shareText, timeText } from "../numbers.js";
import { summarise } from "./summary.js";

/** @typedef {import("./view.js").Timeline} Timeline */
/** @typedef {import("./view.js").Range} Range */

/** Selects an event and brings it into view. @param {Timeline} view @param {number} event */
export function go(view, event) {
  const row = rowOf(view.scene, event);
  if (!lineOf(view.layout, row)) {
    view.opened.set(keyOf(row.track), true);
    view.layout = arrange(view.scene, view.opened);
    nameLanes(view);
  }
  const line = lineOf(view.layout, row);
  if (line && (line.top < view.body.scrollTop || line.top > view.body.scrollTop + view.height - 24)) {
    view.body.scrollTop = Math.max(0, line.top - view.height / 2);
  }
  const { start, end } = view.scene;
  const wide = ((end[event] - start[event]) / view.span.length) * view.width;
  const out = start[event] < view.span.from || end[event] > view.span.to;
  if (wide < 4 || wide > view.width || out) {
    const middle = (start[event] + end[event]) / 2;
    const half = Math.max((end[event] - start[event]) * 8, 2000);
    if (wide < 4 || wide > view.width) view.span.show(middle - half, middle + half);
    else view.span.show(middle - view.span.length / 2, middle + view.span.length / 2);
  }
  choose(view, event);
}


/** Shows what is selected. @param {Timeline} view */
export function fitSelection(view) {
  const { chosen, range, scene } = view;
  if (range) view.show(range.from, range.to);
  else if (chosen >= 0) view.show(scene.start[chosen], scene.end[chosen], 1);
  else view.say("Nothing is selected.");
}


/** Selects an event. @param {Timeline} view @param {number} event -1: none */
export function choose(view, event) {
  view.chosen = event;
  view.range = null;
  view.related = event < 0 ? [] : relatedTo(view.scene, event);
  view.paint();
  sendSelection(view);
  if (event < 0) {
    view.panel.replaceChildren();
    return;
  }
  view.say(spoken(view.scene, event));
  const show = (/** @type {[string, string][]} */ more) => {
    const lead = (/** @type {number} */ to) => go(view, to);
    const panel = eventPanel(view.scene, event, lead, () => fitSelection(view), more);
    view.panel.replaceChildren(panel);
  };
  show([]);
  ask(view, () => view.kernel?.details(event), (more) => more && more.length > 0 && show(more));
}

/** Selects a stretch. @param {Timeline} view @param {Range | null} range */
export function chooseRange(view, range) {
  view.chosen = -1;
  view.range = range;
  view.paint();
  sendSelection(view);
  if (!range) {
    view.panel.replaceChildren();
    return;
  }
  const own = summarise(view.scene, range.from, range.to);
  const show = (/** @type {import("./summary.js").Summary} */ summary, /** @type {string} */ source) => {
    const actions = element("div", "wbt-group");
    actions.append(
      button("Zoom to it", "Show the selection (F)", () => fitSelection(view)),
      button("Clear", "Clear the selection (Esc)", () => clear(view)),
    );
    view.panel.replaceChildren(rangePanel(view.scene, range, summary, source, [actions]));
    const most = summary.breakdowns[0]?.parts.reduce((a, b) => ((b.ns ?? 0) > (a.ns ?? 0) ? b : a));
    const said = most?.ns ? `, most of it ${most.label} (${shareText(most.ns / (range.to - range.from))})` : "";
    view.say(`${timeText(range.to - range.from)} selected${said}`);
  };
  show(own, "From what this page holds.");
  ask(
    view,
    () => view.kernel?.summary(range),
    (summary) => summary && show(summary, "From the whole trace, in the kernel."),
  );
}

/** Takes a late answer only while it is still asked for.
 * @template T @param {Timeline} view @param {() => Promise<T> | undefined} question @param {(answer: T) => void} take */
function ask(view, question, take) {
  view.ticket += 1;
  const { ticket } = view;
  question()?.then((answer) => {
    if (ticket === view.ticket) take(answer);
  });
}

/** @param {Timeline} view */
function sendSelection(view) {
  if (!view.kernel) return;
  const { range, chosen, scene } = view;
  if (range) view.kernel.select({ from: range.from, to: range.to, event: -1 });
  else if (chosen >= 0) {
    view.kernel.select({ from: scene.start[chosen], to: scene.end[chosen], event: chosen });
  } else view.kernel.select(null);
}

/** Selects nothing. @param {Timeline} view */
export function clear(view) {
  choose(view, -1);
  view.say("Nothing is selected.");
}
