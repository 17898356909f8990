/**
 * What a stretch of time holds, from the shipped columns alone. Where a kernel is there, it answers
 * the same question from the trace; both follow docs/metrics.md.
 */

import { eventsIn, workIn, workOf } from "./rows.js";

/** @typedef {import("./decode.js").Scene} Scene */
/** @typedef {import("./decode.js").Row} Row */
/** @typedef {{label: string, ns: number | null, category: string}} Part */
/** @typedef {{title: string, parts: Part[], total: number}} Breakdown */
/** @typedef {{name: string, calls: number, ns: number, category: string}} Named */
/** @typedef {{breakdowns: Breakdown[], longest: Named[], what: string, about: boolean}} Summary */

const MOST_NAMED = 8;

/** Disjoint stretches that any of the intervals covers. @param {[number, number][]} parts sorted */
export function unionOf(parts) {
  /** @type {[number, number][]} */
  const made = [];
  for (const [start, end] of parts) {
    const last = made[made.length - 1];
    if (last && start <= last[1]) last[1] = Math.max(last[1], end);
    else if (end > start) made.push([start, end]);
  }
  return made;
}

/** What `a` covers and `b` does not, both disjoint and sorted.
 * @param {[number, number][]} a @param {[number, number][]} b @returns {number} */
export function lengthWithout(a, b) {
  let total = 0;
  let j = 0;
  for (const [start, end] of a) {
    let at = start;
    while (j < b.length && b[j][1] <= at) j += 1;
    for (let k = j; k < b.length && b[k][0] < end; k += 1) {
      if (b[k][0] > at) total += b[k][0] - at;
      at = Math.max(at, b[k][1]);
    }
    if (end > at) total += end - at;
  }
  return total;
}

/** @param {Scene} scene @param {number} low @param {number} high @returns {Summary} */
export function summarise(scene, low, high) {
  /** @type {Breakdown[]} */
  const breakdowns = [];
  const streams = scene.tracks.filter((track) => track.kind === "stream");
  const loops = scene.tracks.filter((track) => track.kind === "loop");
  for (const [rank, device] of places(streams)) {
    const mine = streams.filter((track) => track.rank === rank && track.device === device);
    const gaps = scene.tracks.filter(
      (track) => track.kind === "idle" && track.rank === rank && track.device === device,
    );
    breakdowns.push(deviceParts(scene, mine, gaps, low, high));
  }
  for (const track of loops) breakdowns.push(sumParts(scene, track, low, high));
  const kernels = streams.length > 0;
  const named = kernels ? streams : scene.tracks.filter((track) => track.kind === "thread");
  return {
    breakdowns,
    longest: longest(scene, kernels ? named.flatMap((t) => t.rows) : leaves(named), low, high),
    what: kernels ? "Longest on the device" : "Longest on the host, with what is inside",
    about: scene.count !== null,
  };
}

/** @param {import("./decode.js").Track[]} tracks @returns {[number, number][]} */
function places(tracks) {
  const seen = new Map(tracks.map((track) => [`${track.rank} ${track.device}`, track]));
  return [...seen.values()].map((track) => [track.rank, track.device]);
}

/** @param {Scene} scene @param {import("./decode.js").Track[]} streams
 * @param {import("./decode.js").Track[]} gaps @param {number} low @param {number} high */
function deviceParts(scene, streams, gaps, low, high) {
  /** @type {Record<string, [number, number][]>} */
  const by = { compute: [], communication: [], memory: [] };
  for (const row of streams.flatMap((track) => track.rows)) {
    const [a, b] = eventsIn(row, low, high);
    for (let i = a; i < b; i += 1) {
      const name = scene.categories[scene.kindOf[scene.label[i]]].name;
      const from = Math.max(scene.start[i], low);
      const to = Math.min(scene.start[i] + workOf(scene, i), high);
      (by[name] ?? by.compute).push([from, to]);
    }
  }
  const order = (/** @type {[number, number][]} */ each) => unionOf(each.sort((x, y) => x[0] - y[0]));
  const [compute, communication, memory] = [by.compute, by.communication, by.memory].map(order);
  const busy = order([...compute, ...communication].map(([x, y]) => [x, y]));
  const sum = (/** @type {[number, number][]} */ each) => each.reduce((t, [x, y]) => t + y - x, 0);
  /** @type {Part[]} */
  const parts = [
    { label: "compute", category: "compute", ns: sum(compute) },
    {
      label: "exposed communication",
      category: "communication",
      ns: lengthWithout(communication, compute),
    },
    { label: "exposed copies", category: "memory", ns: lengthWithout(memory, busy) },
  ];
  const idle = new Map();
  for (const row of gaps.flatMap((track) => track.rows)) {
    workIn(row, low, high, (kind, ns) => idle.set(kind, (idle.get(kind) ?? 0) + ns));
  }
  for (const [kind, ns] of [...idle].sort((x, y) => y[1] - x[1])) {
    const { label, name } = scene.categories[kind];
    parts.push({ label: `idle: ${label}`, category: name, ns });
  }
  return { title: streams[0].group, parts: parts.filter((part) => part.ns), total: high - low };
}

/** @param {Scene} scene @param {import("./decode.js").Track} track @param {number} low
 * @param {number} high @returns {Breakdown} */
function sumParts(scene, track, low, high) {
  /** @type {Part[]} */
  const parts = [];
  for (const row of track.rows) {
    workIn(row, low, high, (kind, ns) => {
      const { label, name } = scene.categories[kind];
      parts.push({ label, category: name, ns });
    });
  }
  parts.sort((x, y) => (y.ns ?? 0) - (x.ns ?? 0));
  return { title: `${track.group}: the loop`, parts, total: high - low };
}

/** Top rows of host threads: with everything nested in them, nothing twice.
 * @param {import("./decode.js").Track[]} tracks @returns {Row[]} */
function leaves(tracks) {
  return tracks.flatMap((track) => track.rows.slice(0, 1));
}

/** @param {Scene} scene @param {Row[]} rows @param {number} low @param {number} high
 * @returns {Named[]} */
function longest(scene, rows, low, high) {
  const ns = new Float64Array(scene.nameOf.length);
  const calls = new Float64Array(scene.nameOf.length);
  for (const row of rows) {
    const [a, b] = eventsIn(row, low, high);
    for (let i = a; i < b; i += 1) {
      const length = scene.end[i] - scene.start[i] || 1;
      const inside = Math.min(scene.end[i], high) - Math.max(scene.start[i], low);
      ns[scene.label[i]] += (inside * workOf(scene, i)) / length;
      calls[scene.label[i]] += scene.count ? scene.count[i] : 1;
    }
  }
  const order = [...calls.keys()].filter((label) => calls[label] > 0);
  order.sort((x, y) => ns[y] - ns[x]);
  return order.slice(0, MOST_NAMED).map((label) => ({
    name: scene.names[scene.nameOf[label]],
    calls: calls[label],
    ns: ns[label],
    category: scene.categories[scene.kindOf[label]].name,
  }));
}
