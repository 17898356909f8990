/** Which lanes stand where: groups, tracks, rows by depth, and what is folded away. */

/** @typedef {import("./decode.js").Scene} Scene */
/** @typedef {import("./decode.js").Track} Track */
/** @typedef {import("./decode.js").Row} Row */
/** @typedef {import("./decode.js").Counter} Counter */

/**
 * @typedef {object} Line
 * @property {"group" | "row" | "counter"} kind
 * @property {number} top
 * @property {number} height
 * @property {Row} [row]
 * @property {Counter} [counter]
 * @property {string} [text]  Of a group.
 */
/** @typedef {{track: Track | null, counter: Counter | null, group: string, top: number,
 *   height: number, hidden: number, open: boolean}} Block  What one label stands beside. */
/** @typedef {{lines: Line[], blocks: Block[], height: number}} Layout */

const HEIGHTS = {
  steps: 20,
  loop: 18,
  idle: 18,
  stream: 20,
  ranges: 16,
  communication: 16,
  thread: 16,
  loader: 16,
};
const GROUP = 24;
const COUNTER = 36;
const SPACE = 4;

/** Rows of a thread that are shown before it is opened: of the loop's own, of any other. */
const FOLDED = { loop: 6, other: 2 };

/** @param {Track} track */
export function rowHeight(track) {
  return HEIGHTS[/** @type {keyof typeof HEIGHTS} */ (track.kind)] ?? 16;
}

/** @param {Track} track @param {boolean} firstThread @returns {number} */
export function foldedRows(track, firstThread) {
  if (track.kind === "thread") return firstThread ? FOLDED.loop : FOLDED.other;
  return track.kind === "ranges" ? 2 : Infinity;
}

/** Tracks with their groups together, each where its first one stands. @param {Scene} scene */
export function inGroups(scene) {
  const groups = new Map();
  for (const each of [...scene.tracks, ...scene.counters]) {
    if (!groups.has(each.group)) groups.set(each.group, []);
    groups.get(each.group).push(each);
  }
  const own = [...groups];
  return [...own.filter(([name]) => name === ""), ...own.filter(([name]) => name !== "")];
}

/**
 * @param {Scene} scene
 * @param {ReadonlyMap<string, boolean>} opened  By the key of a track: whether the reader opened it.
 * @returns {Layout}
 */
export function arrange(scene, opened) {
  /** @type {Line[]} */
  const lines = [];
  /** @type {Block[]} */
  const blocks = [];
  let top = 0;
  for (const [group, members] of inGroups(scene)) {
    if (group !== "") {
      lines.push({ kind: "group", top, height: GROUP, text: group });
      top += GROUP;
    }
    let first = true;
    for (const one of members) {
      if ("at" in one) {
        lines.push({ kind: "counter", top, height: COUNTER, counter: one });
        blocks.push({
          track: null,
          counter: one,
          group,
          top,
          height: COUNTER,
          hidden: 0,
          open: true,
        });
        top += COUNTER + SPACE;
        continue;
      }
      const most = foldedRows(one, one.kind === "thread" && first);
      if (one.kind === "thread") first = false;
      const open = opened.get(keyOf(one)) ?? false;
      const shown = open ? one.rows.length : Math.min(one.rows.length, most);
      const height = rowHeight(one);
      const block = { track: one, counter: null, group, top, height: shown * height, open };
      blocks.push({ ...block, hidden: Math.max(0, one.rows.length - most) });
      for (const row of one.rows.slice(0, shown)) {
        lines.push({ kind: "row", top, height, row });
        top += height;
      }
      top += SPACE;
    }
  }
  return { lines, blocks, height: top };
}

/** @param {Track} track */
export function keyOf(track) {
  return `${track.place}`;
}

/** The line at a height, or undefined. @param {Layout} layout @param {number} y */
export function lineAt(layout, y) {
  return layout.lines.find((line) => y >= line.top && y < line.top + line.height);
}

/** The block that shows a row, and whether the row itself is shown.
 * @param {Layout} layout @param {Row} row */
export function lineOf(layout, row) {
  return layout.lines.find((line) => line.row === row);
}

/** The row that holds an event. @param {Scene} scene @param {number} event @returns {Row} */
export function rowOf(scene, event) {
  const track = scene.tracks.find((each) => event >= each.first && event < each.last);
  const row = track?.rows.find((each) => event >= each.first && event < each.last);
  if (!row) throw new Error(`no row holds event ${event}`);
  return row;
}
