/** What the panel below the lanes says: of one event, or of a stretch of time. */

import { button, element, patch, tableOf } from "./elements.js";
import { rowOf } from "./layout.js";
import { bytesText, grouped, shareText, significant, timeText } from "../numbers.js";
import { instantText } from "./scales.js";
import { firstAbove, firstFrom } from "../sorted.js";

/** @typedef {import("./decode.js").Scene} Scene */
/** @typedef {import("./summary.js").Summary} Summary */

const MOST_JOINED = 6;

/** Events that belong to one: what it launched, what it ended. Made when first asked.
 * @type {WeakMap<Scene, Map<number, number[]>>} */
const backwards = new WeakMap();

/** @param {Scene} scene @param {number} event @returns {number[]} events whose link is `event` */
export function linkedTo(scene, event) {
  let map = backwards.get(scene);
  if (!map) {
    map = new Map();
    for (let i = 0; i < scene.length; i += 1) {
      const to = scene.link[i];
      if (to < 0) continue;
      const known = map.get(to);
      if (known) known.push(i);
      else map.set(to, [i]);
    }
    backwards.set(scene, map);
  }
  return map.get(event) ?? [];
}

/** What encloses an event on its thread, innermost first. @param {Scene} scene
 * @param {number} event @returns {number[]} */
export function enclosing(scene, event) {
  const own = rowOf(scene, event);
  const found = [];
  for (let depth = own.depth - 1; depth >= 0; depth -= 1) {
    const row = own.track.rows[depth];
    const a = firstAbove(scene.end, row.first, row.last, scene.start[event]);
    if (a < row.last && scene.start[a] <= scene.start[event]) found.push(a);
  }
  return found;
}

/** What lies directly or deeper inside an event and leads to device work.
 * @param {Scene} scene @param {number} event @returns {number[]} */
export function launchedIn(scene, event) {
  const own = rowOf(scene, event);
  if (own.track.kind !== "thread") return [];
  const found = [...linkedTo(scene, event)];
  for (const row of own.track.rows.slice(own.depth + 1)) {
    const a = firstFrom(scene.start, row.first, row.last, scene.start[event]);
    for (let i = a; i < row.last && scene.start[i] < scene.end[event]; i += 1) {
      found.push(...linkedTo(scene, i));
    }
  }
  return found.filter((each) => rowOf(scene, each).track.kind === "stream");
}

/** Events that arrows join to one. @param {Scene} scene @param {number} event */
export function relatedTo(scene, event) {
  const own = [scene.link[event], scene.of[event]].filter((each) => each >= 0);
  const kind = rowOf(scene, event).track.kind;
  const more = kind === "thread" ? linkedTo(scene, event).slice(0, MOST_JOINED) : [];
  const launch = kind === "idle" && scene.link[event] >= 0 ? scene.link[scene.link[event]] : -1;
  return [...new Set([...own, ...more, ...(launch >= 0 ? [launch] : [])])];
}

/** @param {Scene} scene @param {number} event */
export function nameOf(scene, event) {
  return scene.names[scene.nameOf[scene.label[event]]];
}

/** @param {Scene} scene @param {number} event */
export function categoryOf(scene, event) {
  return scene.categories[scene.kindOf[scene.label[event]]];
}

/** One sentence for those who hear the page. @param {Scene} scene @param {number} event */
export function spoken(scene, event) {
  const length = timeText(scene.end[event] - scene.start[event]);
  return `${nameOf(scene, event)}, ${length}, ${rowOf(scene, event).track.name}`;
}

/** @param {Scene} scene @param {number} event @param {(event: number) => void} go
 * @param {() => void} zoom @param {[string, string][]} more what the kernel knows besides */
export function eventPanel(scene, event, go, zoom, more) {
  const made = element("div", "wbt-event");
  const category = categoryOf(scene, event);
  const head = element("p", "wbt-title");
  head.append(patch(category), element("strong", "", nameOf(scene, event)));
  const { track } = rowOf(scene, event);
  const dl = element("dl");
  const add = (/** @type {string} */ term, /** @type {(string | Node)[]} */ ...what) => {
    const dd = element("dd");
    dd.append(...what);
    dl.append(element("dt", "", term), dd);
  };
  const link = (/** @type {number} */ to) => {
    const made = button(nameOf(scene, to), "Show this event", () => go(to));
    made.className = "wbt-link";
    return made;
  };
  const lasts = scene.end[event] - scene.start[event];
  add(category.idle && track.kind === "idle" ? "The device idles" : "Takes", timeText(lasts));
  add("From", instantText(scene.start[event]));
  add("What", track.kind === "idle" ? `the device waits ${category.waits}` : category.label);
  add("Where", [track.group, track.name].filter(Boolean).join(" · "));
  const step = stepOf(scene, track.rank, scene.start[event]);
  if (step) add("In", step);
  if (scene.count && scene.count[event] > 1) {
    const idle = scene.idle ? scene.idle[event] : 0;
    add("Stands for", `${grouped(scene.count[event])} events, ${timeText(lasts - idle)} of work`);
  }
  if (scene.shape && scene.shape[event] > 0) add("Shapes", scene.shapes[scene.shape[event] - 1]);
  joined(scene, event, track.kind, add, link);
  for (const [term, text] of more) add(term, text);
  made.append(head, dl);
  made.append(button("Zoom to it", "Show this event over the whole width", zoom));
  return made;
}

/** @param {Scene} scene @param {number} event @param {string} kind
 * @param {(term: string, ...what: (string | Node)[]) => void} add
 * @param {(to: number) => Node} link */
function joined(scene, event, kind, add, link) {
  const to = scene.link[event];
  const of = scene.of[event];
  if (kind === "idle") {
    if (of >= 0) add("The host was in", link(of));
    if (to >= 0) add("Ended by", link(to));
    if (to >= 0 && scene.link[to] >= 0) add("Launched by", ...chain(scene, scene.link[to], link));
    return;
  }
  if (kind === "stream") {
    if (to < 0) return;
    add("Launched by", ...chain(scene, to, link));
    const late = scene.start[event] - scene.end[to];
    add("Waited in the queue", late > 0 ? timeText(late) : "began before the call returned");
    return;
  }
  const above = enclosing(scene, event);
  if (above.length > 0) add("Inside", ...between(above.map(link)));
  const launched = launchedIn(scene, event);
  if (launched.length > 0) {
    const work = launched.reduce((sum, each) => sum + scene.end[each] - scene.start[each], 0);
    const rest = launched.length - Math.min(launched.length, MOST_JOINED);
    const shown = between(launched.slice(0, MOST_JOINED).map(link));
    if (rest > 0) shown.push(` and ${grouped(rest)} more`);
    add("Launches", `${timeText(work)} on the device: `, ...shown);
  }
}

/** A launch and everything around it. @param {Scene} scene @param {number} launch
 * @param {(to: number) => Node} link */
function chain(scene, launch, link) {
  return between([launch, ...enclosing(scene, launch)].map(link));
}

/** @param {Node[]} nodes @returns {(string | Node)[]} */
function between(nodes) {
  return nodes.flatMap((node, at) => (at > 0 ? [" ‹ ", node] : [node]));
}

/** @param {Scene} scene @param {number} rank @param {number} at */
function stepOf(scene, rank, at) {
  const track = scene.tracks.find((each) => each.kind === "steps" && each.rank === rank);
  if (!track) return "";
  const row = track.rows[0];
  const i = firstAbove(scene.end, row.first, row.last, at);
  return i < row.last && scene.start[i] <= at ? nameOf(scene, i) : "";
}

/** @param {Scene} scene @param {{from: number, to: number}} range @param {Summary} summary
 * @param {string} source where the numbers come from @param {HTMLElement[]} actions */
export function rangePanel(scene, range, summary, source, actions) {
  const made = element("div", "wbt-event");
  const head = element("p", "wbt-title");
  head.append(element("strong", "", `${timeText(range.to - range.from)} selected`));
  head.append(` from ${instantText(range.from)}`);
  const tables = element("div", "wbt-tables");
  const known = new Map(scene.categories.map((each) => [each.name, each]));
  const named = (/** @type {string} */ text, /** @type {string} */ category) => {
    const cell = element("span", "wbt-named");
    const colour = known.get(category);
    if (colour) cell.append(patch(colour));
    cell.append(element("span", "", text));
    return cell;
  };
  for (const each of summary.breakdowns) {
    const rows = each.parts.map((part) => [
      named(part.label, part.category),
      part.ns === null ? "not measured" : timeText(part.ns),
      part.ns === null ? "" : bar(part.ns / each.total, known.get(part.category)),
    ]);
    tables.append(tableOf(each.title, ["part", "time", "share"], rows, [1]));
  }
  const rows = summary.longest.map((each) => [
    named(each.name, each.category),
    timeText(each.ns),
    grouped(each.calls),
  ]);
  if (rows.length > 0) tables.append(tableOf(summary.what, ["name", "time", "calls"], rows, [1, 2]));
  const note = summary.about ? `About: some events are drawn together. ${source}` : source;
  const foot = element("p", "wbt-quiet", note);
  made.append(head, tables, foot, ...actions);
  return made;
}

/** @param {number} share @param {import("./decode.js").Category | undefined} category */
function bar(share, category) {
  const made = element("span", "wbt-share");
  const filled = element("span", category?.idle ? "wbt-bar wbt-thin" : "wbt-bar");
  filled.style.width = `${Math.max(1, Math.min(1, share) * 72)}px`;
  filled.style.backgroundColor = category?.colour ?? "currentColor";
  made.append(filled, element("span", "", shareText(share)));
  return made;
}

/** The lanes as a table, for those who do not see the canvas. @param {Scene} scene */
export function lanesTable(scene) {
  const rows = scene.tracks.map((track) => {
    let work = 0;
    let count = 0;
    const top = track.rows[0];
    for (let i = top.first; i < top.last; i += 1) work += scene.end[i] - scene.start[i];
    for (let i = track.first; i < track.last; i += 1) count += scene.count ? scene.count[i] : 1;
    return [
      track.group,
      track.name,
      grouped(count),
      timeText(work),
      shareText(work / (scene.to - scene.from)),
    ];
  });
  const heads = ["group", "lane", "events", "filled", "of the recording"];
  return tableOf("Lanes", heads, rows, [2, 3, 4]);
}

/** @param {import("./decode.js").Counter} counter @param {number} at */
export function counterText(counter, at) {
  const i = firstAbove(counter.at, 0, counter.at.length, at) - 1;
  if (i < 0) return "not measured";
  const value = counter.value[i];
  if (counter.unit === "bytes") return bytesText(value);
  return counter.unit === "percent" ? shareText(value / 100) : significant(value);
}
