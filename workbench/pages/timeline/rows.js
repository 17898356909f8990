/**
 * One row of events as pixels: exact at every zoom.
 *
 * Each column of pixels gets the share of its time that events cover and the category that takes
 * most of it. Where many events share a column, sums over blocks of events (`sumsOf`) stand in for
 * the events inside, so that a row costs as much as it has columns, however many events it holds.
 * Nothing is rounded: an idle column stays empty and a gap wider than a column shows.
 */

import { firstAbove, firstFrom } from "../sorted.js";

/** @typedef {import("./decode.js").Row} Row */
/** @typedef {import("./decode.js").Sums} Sums */

export const BLOCK = 16;

/** Most categories that one row is summed by; the palette has fewer. */
const MOST_KINDS = 256;
const scratch = new Float64Array(MOST_KINDS);

/** As `firstAbove` or `firstFrom`, quick where the answer is near `low`.
 * @param {typeof firstAbove} search @param {Float64Array} values @param {number} low
 * @param {number} high @param {number} limit @param {boolean} orEqual */
function near(search, values, low, high, limit, orEqual) {
  let step = 1;
  let until = low;
  while (until < high && (orEqual ? values[until] < limit : values[until] <= limit)) {
    low = until + 1;
    until += step;
    step *= 2;
  }
  return search(values, low, Math.min(until, high), limit);
}

/** Work in an event: its length, without what lies idle inside a merged one.
 * @param {import("./decode.js").Scene} scene @param {number} i */
export function workOf(scene, i) {
  const length = scene.end[i] - scene.start[i];
  return scene.idle ? length - scene.idle[i] : length;
}

/** Work by category before every block, made when first needed. @param {Row} row @returns {Sums} */
export function sumsOf(row) {
  if (row.sums) return row.sums;
  const { scene, first, last } = row;
  const kinds = [];
  const place = new Int16Array(MOST_KINDS).fill(-1);
  for (let i = first; i < last; i += 1) {
    const kind = scene.kindOf[scene.label[i]];
    if (place[kind] < 0) place[kind] = kinds.push(kind) - 1;
  }
  const width = kinds.length;
  const blocks = Math.ceil((last - first) / BLOCK);
  const total = new Float64Array((blocks + 1) * width);
  for (let block = 0, i = first; block < blocks; block += 1) {
    const at = block * width;
    for (let k = 0; k < width; k += 1) total[at + width + k] = total[at + k];
    for (const until = Math.min(i + BLOCK, last); i < until; i += 1) {
      total[at + width + place[scene.kindOf[scene.label[i]]]] += workOf(scene, i);
    }
  }
  row.sums = { kinds, total };
  return row.sums;
}

/** Adds the work of events [a, b) that lies in [low, high) to `scratch`, by category.
 * @param {Row} row @param {number} a @param {number} b @param {number} low @param {number} high */
function addWork(row, a, b, low, high) {
  const { scene } = row;
  for (let i = a; i < b; i += 1) {
    const start = scene.start[i];
    const end = scene.end[i];
    let work = Math.min(end, high) - Math.max(start, low);
    if (scene.idle && scene.idle[i] > 0) work *= 1 - scene.idle[i] / (end - start);
    scratch[scene.kindOf[scene.label[i]]] += work;
  }
}

/** Sums the work of a row in a stretch by category. @param {Row} row @param {number} low
 * @param {number} high @param {(kind: number, ns: number, events: number) => void} take */
export function workIn(row, low, high, take) {
  const { scene, first, last } = row;
  const a = firstAbove(scene.end, first, last, low);
  const b = firstFrom(scene.start, a, last, high);
  if (b <= a) return;
  scratch.fill(0);
  addBetween(row, a, b, low, high);
  const { kinds } = sumsOf(row);
  for (const kind of kinds) if (scratch[kind] > 0) take(kind, scratch[kind], b - a);
}

/** @param {Row} row @param {number} a @param {number} b @param {number} low @param {number} high */
function addBetween(row, a, b, low, high) {
  const from = Math.ceil((a + 1 - row.first) / BLOCK); // whole blocks without the clipped ends
  const to = Math.floor((b - 1 - row.first) / BLOCK);
  if (to - from < 2) {
    addWork(row, a, b, low, high);
    return;
  }
  const { kinds, total } = sumsOf(row);
  addWork(row, a, row.first + from * BLOCK, low, high);
  addWork(row, row.first + to * BLOCK, b, low, high);
  for (let k = 0; k < kinds.length; k += 1) {
    scratch[kinds[k]] += total[to * kinds.length + k] - total[from * kinds.length + k];
  }
}

/**
 * The columns of a row.
 *
 * @param {Row} row
 * @param {number} from  Time at the left edge of column 0.
 * @param {number} perColumn  Nanoseconds of a column.
 * @param {Float32Array} cover  Out: covered share of each column, 0 to 1.
 * @param {Int16Array} kind  Out: category that covers most of it; -1 where nothing is.
 * @param {Int32Array} event  Out: the event that covers the whole column, or -1.
 */
export function coverRow(row, from, perColumn, cover, kind, event) {
  const { scene, first, last } = row;
  const { start, end } = scene;
  const width = cover.length;
  cover.fill(0);
  kind.fill(-1);
  event.fill(-1);
  let a = firstAbove(end, first, last, from);
  for (let x = 0; x < width; ) {
    const low = from + x * perColumn;
    const high = from + (x + 1) * perColumn;
    a = near(firstAbove, end, a, last, low, false);
    if (a === last) return;
    if (start[a] >= high) {
      const to = Math.floor((start[a] - from) / perColumn);
      x = Math.max(x + 1, Math.min(to, width));
      continue;
    }
    if (start[a] <= low && end[a] >= high) {
      const until = Math.max(x + 1, Math.min(width, Math.floor((end[a] - from) / perColumn)));
      const share = Math.min(1, workOf(scene, a) / (end[a] - start[a]));
      const of = scene.kindOf[scene.label[a]];
      for (; x < until; x += 1) {
        cover[x] = share;
        kind[x] = of;
        event[x] = a;
      }
      continue;
    }
    const b = near(firstFrom, start, a, last, high, true);
    mix(row, a, b, low, high, x, cover, kind);
    x += 1;
  }
}

/** @param {Row} row @param {number} a @param {number} b @param {number} low @param {number} high
 * @param {number} x @param {Float32Array} cover @param {Int16Array} kind */
function mix(row, a, b, low, high, x, cover, kind) {
  const { kindOf, label } = row.scene;
  scratch.fill(0);
  addBetween(row, a, b, low, high);
  let total = 0;
  let most = kindOf[label[a]];
  const many = b - a > BLOCK;
  const kinds = many ? sumsOf(row).kinds : null;
  for (let k = 0; k < (kinds ? kinds.length : b - a); k += 1) {
    const of = kinds ? kinds[k] : kindOf[label[a + k]];
    if (scratch[of] > scratch[most]) most = of;
  }
  if (kinds) for (const of of kinds) total += scratch[of];
  else {
    for (let i = a; i < b; i += 1) {
      const of = kindOf[label[i]];
      total += scratch[of];
      scratch[of] = 0;
    }
  }
  cover[x] = Math.min(1, total / (high - low));
  kind[x] = most;
}

/** The event of a row at an instant, or the nearest within `reach`; -1 where there is none.
 * @param {Row} row @param {number} at @param {number} reach @returns {number} */
export function eventAt(row, at, reach) {
  const { scene, first, last } = row;
  const a = firstAbove(scene.end, first, last, at);
  if (a < last && scene.start[a] <= at) return a;
  const after = a < last ? scene.start[a] - at : Infinity;
  const before = a > first ? at - scene.end[a - 1] : Infinity;
  if (Math.min(after, before) > reach) return -1;
  return after < before ? a : a - 1;
}

/** The events that lie in a stretch. @param {Row} row @param {number} low @param {number} high
 * @returns {[number, number]} */
export function eventsIn(row, low, high) {
  const a = firstAbove(row.scene.end, row.first, row.last, low);
  return [a, firstFrom(row.scene.start, a, row.last, high)];
}
