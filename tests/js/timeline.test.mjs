/** The timeline's pure parts: unpacking, rows as pixels, scales, search and sums of a stretch. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

const FOLDER = "../../workbench/pages/timeline";
const { decode, fromBase64, unshuffle, unzigzag } = await import(`${FOLDER}/decode.js`);
const { coverRow, eventAt, workIn } = await import(`${FOLDER}/rows.js`);
const { firstAbove } = await import("../../workbench/pages/sorted.js");
const scales = await import(`${FOLDER}/scales.js`);
const { nextMatch, search } = await import(`${FOLDER}/search.js`);
const { lengthWithout, summarise, unionOf } = await import(`${FOLDER}/summary.js`);
const { arrange } = await import(`${FOLDER}/layout.js`);

/** Numbers from 0 to 1, the same every time. @param {number} seed */
function random(seed) {
  return () => {
    seed = (seed * 1664525 + 1013904223) % 4294967296;
    return seed / 4294967296;
  };
}

/** A scene of one row. @param {[number, number, number][]} events start, end, category */
function sceneOf(events, kind = "stream") {
  const scene = {
    start: Float64Array.from(events, (each) => each[0]),
    end: Float64Array.from(events, (each) => each[1]),
    label: Uint32Array.from(events, (each) => each[2]),
    kindOf: Uint8Array.from([0, 1, 2, 3]),
    nameOf: Uint32Array.from([0, 1, 2, 3]),
    names: ["sgemm", "ncclAllReduce", "Memcpy HtoD", "idle: input"],
    categories: ["compute", "communication", "memory", "input"].map((name) => ({ name, label: name })),
    length: events.length,
    count: null,
    idle: null,
    totals: null,
    counters: [],
    tracks: [],
  };
  const track = { kind, group: "GPU 0", name: "stream 7", rank: 0, device: 0, place: 0, rows: [] };
  const row = { scene, first: 0, last: events.length, track, depth: 0, sums: null };
  track.rows.push(row);
  track.first = 0;
  track.last = events.length;
  scene.tracks.push(track);
  return { scene, row };
}

/** Two categories take equally much of a column: either may give the colour. */
const ANY = 99;

/** What a reader would measure with a ruler: every event against every column. */
function byForce(scene, from, perColumn, width) {
  const cover = new Float64Array(width);
  const most = new Int16Array(width).fill(-1);
  for (let x = 0; x < width; x += 1) {
    const low = from + x * perColumn;
    const high = from + (x + 1) * perColumn;
    const by = [0, 0, 0, 0];
    let touched = false;
    for (let i = 0; i < scene.length; i += 1) {
      const inside = Math.min(scene.end[i], high) - Math.max(scene.start[i], low);
      if (inside > 0) {
        by[scene.label[i]] += inside;
        touched = true;
      }
    }
    cover[x] = by.reduce((a, b) => a + b) / perColumn;
    const order = [...by].sort((a, b) => b - a);
    if (touched) most[x] = order[0] - order[1] > 1e-6 * perColumn ? by.indexOf(order[0]) : ANY;
  }
  return { cover, most };
}

function drawn(row, from, perColumn, width) {
  const cover = new Float32Array(width);
  const kind = new Int16Array(width);
  const event = new Int32Array(width);
  coverRow(row, from, perColumn, cover, kind, event);
  return { cover, kind, event };
}

/** Bursts of short kernels, pauses of every length, and now and then a long kernel. */
function busy(seed, count) {
  const next = random(seed);
  const events = [];
  let at = 0;
  for (let i = 0; i < count; i += 1) {
    at += next() < 0.02 ? Math.floor(next() * 50_000) : Math.floor(next() * 40);
    const dur = 1 + Math.floor(next() < 0.01 ? next() * 30_000 : next() * 200);
    events.push([at, at + dur, Math.floor(next() * 3)]);
    at += dur;
  }
  return events;
}

test("every column covers what a ruler measures, at every zoom", () => {
  for (const seed of [1, 2, 3]) {
    const { scene, row } = sceneOf(busy(seed, 1500));
    const whole = scene.end[scene.length - 1];
    for (const share of [1.1, 0.3, 0.07, 0.01, 0.0005]) {
      const width = 397;
      const perColumn = (whole * share) / width;
      const from = whole * (share > 1 ? -0.05 : 0.4);
      const { cover, kind } = drawn(row, from, perColumn, width);
      const truth = byForce(scene, from, perColumn, width);
      for (let x = 0; x < width; x += 1) {
        assert.ok(Math.abs(cover[x] - truth.cover[x]) < 1e-4, `${seed} ${share} ${x}`);
        if (truth.most[x] === ANY) assert.ok(kind[x] >= 0);
        else assert.equal(kind[x], truth.most[x], `${seed} ${share} ${x}: colour`);
      }
    }
  }
});

test("a gap wider than a column shows, and no column is empty that has none", () => {
  const { scene, row } = sceneOf(busy(7, 20_000));
  const width = 1000;
  const perColumn = scene.end[scene.length - 1] / width;
  const { cover, kind } = drawn(row, 0, perColumn, width);
  let wide = 0;
  for (let i = 1; i < scene.length; i += 1) {
    const [low, high] = [scene.end[i - 1], scene.start[i]];
    if (high - low <= perColumn) continue;
    wide += 1;
    const columns = [];
    for (let x = Math.floor(low / perColumn); x <= Math.floor((high - 1) / perColumn); x += 1) {
      columns.push(x);
    }
    // More than one column of idle time over two or three columns: one of them is half empty.
    assert.ok(columns.some((x) => cover[x] <= 0.5 + 1e-6));
    for (const x of columns.slice(1, -1)) assert.equal(kind[x], -1, "wholly idle, so nothing is drawn");
  }
  assert.ok(wide > 10);
  for (let x = 0; x < width; x += 1) {
    const a = firstAbove(scene.end, 0, scene.length, x * perColumn);
    if (scene.start[a] < (x + 1) * perColumn) assert.ok(kind[x] >= 0, "work is never left out");
  }
});

test("the category that takes most of a column gives its colour", () => {
  // 100 ns: 30 of compute, 25 + 25 of copies.
  const { row } = sceneOf([[0, 30, 0], [40, 65, 2], [70, 95, 2]]);
  const { cover, kind, event } = drawn(row, 0, 100, 1);
  assert.equal(kind[0], 2);
  assert.ok(Math.abs(cover[0] - 0.8) < 1e-6);
  assert.equal(event[0], -1);
});

test("an event that fills columns is told by itself", () => {
  const { row } = sceneOf([[0, 50, 0], [50, 400, 1]]);
  const { event, cover } = drawn(row, 0, 100, 4);
  assert.deepEqual([...event], [-1, 1, 1, 1]);
  assert.deepEqual([...cover], [1, 1, 1, 1]);
});

test("a merged event is as strong as the work in it", () => {
  const { scene, row } = sceneOf([[0, 1000, 0]]);
  scene.idle = Float64Array.of(750);
  const { cover } = drawn(row, 0, 100, 10);
  for (const each of cover) assert.ok(Math.abs(each - 0.25) < 1e-6);
});

test("work in a stretch is summed by category, ends clipped", () => {
  const events = Array.from({ length: 1000 }, (_, i) => [i * 10, i * 10 + 6, i % 2]);
  const { row } = sceneOf(events);
  const found = new Map();
  workIn(row, 3, 9983, (kind, ns) => found.set(kind, ns));
  // Even events 0 to 998: the first is cut to [3, 6), the last to [9980, 9983), 498 are whole.
  // Odd events 1 to 997 are whole; 999 begins behind the stretch.
  assert.equal(found.get(0), 3 + 498 * 6 + 3);
  assert.equal(found.get(1), 499 * 6);
});

test("the event at an instant, else the nearest within reach", () => {
  const { row } = sceneOf([[10, 20, 0], [30, 40, 0]]);
  assert.equal(eventAt(row, 15, 0), 0);
  assert.equal(eventAt(row, 22, 3), 0);
  assert.equal(eventAt(row, 28, 3), 1);
  assert.equal(eventAt(row, 25, 3), -1);
  assert.equal(eventAt(row, 1000, 3), -1);
});

test("columns of bytes come back as numbers", () => {
  // 258 and 3 in two bytes each: low bytes 2 and 3, then high bytes 1 and 0.
  assert.deepEqual([...unshuffle(Uint8Array.of(9, 2, 3, 1, 0), 1, 2, new Float64Array(2))], [258, 3]);
  // 0: none; 1: +0; 4 is 3 + 1, an odd code: 2 back.
  assert.deepEqual([...unzigzag(Float64Array.of(11, 0, 1, 4))], [5, -1, 5, 3]);
});

test("an instant has digits down to the nanosecond", () => {
  assert.equal(scales.instantText(109_213_622), "109.213\u2009622 ms");
});

test("ticks are round, inside, and told in one unit", () => {
  const made = scales.ticks(87e6, 124e6, 9);
  assert.deepEqual(made.map((each) => each.text).slice(0, 2), ["90 ms", "95 ms"]);
  assert.ok(made.every((each) => each.at >= 87e6 && each.at <= 124e6));
  assert.deepEqual(scales.ticks(1000.2e6, 1000.9e6, 4).map((each) => each.text)[0], "1.0002 s");
});

test("a span stays in its bounds and keeps what is under the pointer", () => {
  const span = new scales.Span(0, 1e9);
  span.zoom(3e8, 0.5);
  assert.equal((3e8 - span.from) / span.length, 0.3);
  span.pan(100);
  assert.ok(span.to <= 1.02e9 + 1);
  span.show(5, 5);
  assert.equal(span.length, 20);
  span.zoom(10, 1e12);
  assert.ok(span.length <= 1.04e9 + 1);
});

test("search takes every word, whatever its case, and counts what was merged away", () => {
  const { scene } = sceneOf([[30, 40, 1], [0, 10, 0], [10, 20, 1]]);
  const found = search(scene, "NCCL allr");
  assert.equal(nextMatch(scene, found, -1, 1), 0);
  assert.deepEqual([...found.events], [2, 0]); // in order of time
  assert.equal(found.recorded, 2);
  scene.totals = [5, 7, 0, 0];
  assert.equal(search(scene, "nccl").recorded, 7);
  assert.equal(search(scene, "  "), null);
  assert.equal(search(scene, "nothing so called").events.length, 0);
  assert.equal(nextMatch(scene, found, -1, 1), 0);
  assert.equal(nextMatch(scene, found, 1, 1), 0);
  assert.equal(nextMatch(scene, found, 0, -1), 1);
});

test("unions and what they leave", () => {
  assert.deepEqual(unionOf([[0, 5], [3, 8], [8, 9], [20, 21]]), [[0, 9], [20, 21]]);
  assert.equal(lengthWithout([[0, 10], [20, 30]], [[2, 4], [8, 22], [29, 40]]), 2 + 4 + 7);
  assert.equal(lengthWithout([[0, 10]], []), 10);
});

test("a stretch of a device sums to itself: work, and idle by cause", () => {
  const { scene } = sceneOf([[0, 100, 0]]);
  const row = (events, kind) => {
    const first = scene.length;
    for (const name of ["start", "end", "label"]) {
      const at = ["start", "end", "label"].indexOf(name);
      scene[name] = scene[name].constructor.from([...scene[name], ...events.map((each) => each[at])]);
    }
    scene.length += events.length;
    const track = { kind, group: "GPU 0", name: kind, rank: 0, device: 0, first, last: scene.length };
    track.rows = [{ scene, first, last: scene.length, track, depth: 0, sums: null }];
    scene.tracks.push(track);
  };
  row([[60, 160, 1]], "stream"); // 60 ns of the 100 beside no compute
  row([[200, 300, 2]], "stream");
  row([[160, 200, 3]], "idle");
  const { breakdowns, longest } = summarise(scene, 50, 250);
  assert.deepEqual(
    breakdowns[0].parts.map((part) => [part.label, part.ns]),
    [
      ["compute", 50],
      ["exposed communication", 60],
      ["exposed copies", 50],
      ["idle: input", 40],
    ],
  );
  assert.equal(breakdowns[0].total, 200);
  assert.deepEqual(
    longest.map((each) => [each.name, each.ns]),
    [
      ["ncclAllReduce", 100],
      ["sgemm", 50],
      ["Memcpy HtoD", 50],
    ],
  );
});

test("threads fold their deeper rows away until they are opened", () => {
  const { scene } = sceneOf([[0, 1, 0]], "thread");
  const [track] = scene.tracks;
  track.rows = Array.from({ length: 10 }, (_, depth) => ({ ...track.rows[0], depth }));
  const folded = arrange(scene, new Map());
  const opened = arrange(scene, new Map([["0", true]]));
  assert.equal(folded.blocks[0].hidden, 4);
  assert.equal(folded.lines.filter((line) => line.kind === "row").length, 6);
  assert.equal(opened.lines.filter((line) => line.kind === "row").length, 10);
});

test("what Python packed is what the page shows", { skip: !process.env.TIMELINE_SCENE }, () => {
  const scene = decode(fromBase64(readFileSync(process.env.TIMELINE_SCENE, "utf8")));
  const truth = JSON.parse(readFileSync(process.env.TIMELINE_TRUTH, "utf8"));
  const told = [...Array(scene.length).keys()].map((i) => ({
    name: scene.names[scene.nameOf[scene.label[i]]],
    category: scene.categories[scene.kindOf[scene.label[i]]].name,
    start: scene.start[i],
    end: scene.end[i],
    link: scene.link[i],
  }));
  assert.deepEqual(told, truth.events);
  assert.deepEqual(
    scene.tracks.map((track) => [track.kind, track.name, track.rows.length]),
    truth.tracks,
  );
  assert.deepEqual([...scene.counters[0].at], truth.counter.at);
  assert.deepEqual([...scene.counters[0].value], truth.counter.value);
});
