/** The panel's pure parts: numbers, scales, bins, the ring and what arrives over the wire. */

import assert from "node:assert/strict";
import test from "node:test";

import { draw, tickText } from "../../workbench/widgets/panel/chart.js";
import { clockText } from "../../workbench/widgets/panel/clock.js";
import * as format from "../../workbench/pages/numbers.js";
import { stateText } from "../../workbench/widgets/panel/groups.js";
import { LOST, Link, judge } from "../../workbench/widgets/panel/link.js";
import { Ring } from "../../workbench/widgets/panel/ring.js";
import * as scale from "../../workbench/widgets/panel/scale.js";
import { scopeOf } from "../../workbench/widgets/panel/scope.js";
import { CHARTS } from "../../workbench/widgets/panel/specs.js";
import { unpack } from "../../workbench/widgets/panel/wire.js";

test("times have three digits and the unit that suits them", () => {
  assert.equal(format.timeText(18_720_000), "18.7 ms");
  assert.equal(format.timeText(999_600), "1.00 ms"); // 999.6 µs would round to 1,000 µs
  assert.equal(format.timeText(2.5e9), "2.50 s");
  assert.equal(format.timeText(0), "0 ns");
});

test("what was not measured is said, never 0", () => {
  for (const missing of [null, undefined, NaN, Infinity]) {
    assert.equal(format.timeText(missing), "not measured");
    assert.equal(format.shareText(missing), "not measured");
    assert.equal(format.rateText(missing), "not measured");
  }
});

test("shares have a decimal below ten percent only", () => {
  assert.equal(format.shareText(0.391), "39 %");
  assert.equal(format.shareText(0.0391), "3.9 %");
  assert.equal(format.shareText(0.0001), "< 0.1 %");
  assert.equal(format.shareText(0), "0.0 %");
});

test("thousands are separated by thin spaces", () => {
  assert.equal(format.countText(1234567), "1\u2009234\u2009567");
  assert.equal(format.bytesText(1_250_000_000), "1.25 GB");
  assert.equal(format.significant(0.0001234), "0.000123");
});

test("a clock counts minutes and hours", () => {
  assert.equal(clockText(7), "0:07");
  assert.equal(clockText(3723), "1:02:03");
});

test("a linear scale goes there and back", () => {
  const x = scale.linear([10, 20], [0, 500]);
  assert.equal(x.at(15), 250);
  assert.equal(x.back(250), 15);
});

test("ticks are round and inside", () => {
  assert.deepEqual(scale.ticks([0, 1], 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(scale.ticks([3, 47], 5), [10, 20, 30, 40]);
  assert.deepEqual(scale.clockTicks([5, 185], 4), [60, 120, 180]);
});

test("one very long step does not press the others to the ground", () => {
  const usual = Array.from({ length: 99 }, () => 10);
  assert.ok(scale.usualTop([...usual, 10_000]) <= 20); // 1.5 times 10, rounded up
  assert.ok(scale.usualTop([10, 11, 12]) >= 12); // nothing unusual: all of it fits
  assert.equal(scale.usualTop([]), 1);
});

test("a long scale holds where a value began, and no single peak", () => {
  // 20 losses of 2, then 980 of 0.01: the mean of the first ten is 2, and 2.2 rounds up to 2.5.
  const losses = Array.from({ length: 1000 }, (_, i) => (i < 20 ? 2 : 0.01));
  assert.ok(scale.longTop(losses) >= 2 && scale.longTop(losses) <= 3);
  losses[500] = 50; // one of ten: its stretch has a mean of 5
  assert.ok(scale.longTop(losses) < 10);
  assert.equal(scale.longTop([]), 1);
});

test("bins hide no outlier and join what falls on one pixel", () => {
  const x = scale.linear([0, 10], [0, 2]);
  const made = scale.bins([0, 1, 2, 6, 7], [1, 9, 2, 4, NaN], x);
  assert.deepEqual(made.map((bin) => [bin.least, bin.most, bin.mean]), [[1, 9, 4], [4, 4, 4]]);
});

test("quantiles leave out what was not measured", () => {
  assert.equal(scale.quantile([NaN, 1, 3], 0.5), 2);
  assert.equal(scale.quantile([NaN], 0.5), null);
});

test("the ring keeps the newest rows in their order, however they come", () => {
  const ring = new Ring(["step", "loss"], 5);
  for (let step = 0; step < 23; step += 1) ring.push({ step: [step] }, 1);
  assert.deepEqual([...ring.column("step")], [18, 19, 20, 21, 22]);
  assert.ok(Number.isNaN(ring.last("loss")));
  ring.push({ step: [23, 24, 25, 26, 27, 28, 29], loss: [1, 2, 3, 4, 5, 6, 7] }, 7);
  assert.deepEqual([...ring.column("step")], [25, 26, 27, 28, 29]);
  assert.equal(ring.last("loss"), 7);
  ring.clear();
  assert.equal(ring.column("step").length, 0);
});

test("columns arrive whole from any kind of buffer", () => {
  const wide = new Float64Array([7, 8]);
  const narrow = new Float32Array([1.5, 2.5]);
  const padded = new Uint8Array(16 + wide.byteLength);
  padded.set(new Uint8Array(wide.buffer), 16);
  const block = { count: 2, wide: ["step"], columns: ["loss"], reset: false, pooled: 1 };
  const views = [
    [wide.buffer, narrow.buffer],
    [new DataView(wide.buffer), new Uint8Array(narrow.buffer)],
    [padded.subarray(16), new DataView(narrow.buffer)],
  ];
  for (const buffers of views) {
    const rows = unpack(block, buffers);
    assert.deepEqual([...rows.step], [7, 8]);
    assert.deepEqual([...rows.loss], [1.5, 2.5]);
  }
  assert.throws(() => unpack({ ...block, count: 3 }, views[0]), /incomplete/);
});

test("a link is judged by what was sent and not taken", () => {
  const fresh = { waited: 0, silent: 0, kernel: null };
  assert.equal(judge(fresh), "live");
  assert.equal(judge({ ...fresh, silent: 60_000 }), "live"); // nothing was asked: nothing is wrong
  assert.equal(judge({ ...fresh, waited: 1000, silent: 100 }), "busy"); // it sends, so it lives
  assert.equal(judge({ ...fresh, waited: 1000, silent: 1000 }), "busy");
  assert.equal(judge({ ...fresh, waited: 5000, silent: 5000 }), "gone");
  assert.equal(judge({ ...fresh, waited: 60_000, silent: 60_000, kernel: "busy" }), "busy");
  assert.equal(judge({ ...fresh, kernel: "dead" }), "gone");
  assert.equal(judge({ ...fresh, kernel: "disconnected" }), "gone");
});

test("a switch says what is in force, pending or impossible", () => {
  const row = { name: "compile", kind: "choice", choices: ["off", "default"], refused: null };
  const harm = { default: { state: "harmful", reason: "slower here" } };
  assert.equal(stateText({ ...row, values: {} }, undefined, false), "as yours");
  assert.equal(stateText({ ...row, values: {} }, false, false), "off");
  assert.equal(stateText({ ...row, values: harm }, true, false), "default: slower here");
  assert.equal(stateText({ ...row, values: {} }, true, true), "◔ pending until the next step");
  const refused = { ...row, values: {}, refused: "no compiler" };
  assert.equal(stateText(refused, undefined, false), "not possible: no compiler");
});

test("titles say the finding in view", () => {
  const parts = CHARTS.find((one) => one.id === "parts");
  const seen = (/** @type {Record<string, number>} */ shares) => ({
    columns: {},
    reasons: {},
    median: () => null,
    share: (/** @type {string} */ name) => shares[name] ?? null,
  });
  assert.equal(parts.title(seen({ input_ns: 0.39, forward_ns: 0.5 })), "39 % of a step waits for data");
  assert.equal(
    parts.title(seen({ input_ns: 0.02, backward_ns: 0.6 })),
    "The backward pass takes 60 % of a step",
  );
  assert.equal(parts.title(seen({})), "Where a step goes: not measured");
});

test("what is said of steps holds for the settings of the last one", () => {
  const steps = (/** @type {number[]} */ change) => ({
    change,
    at_s: change.map((_, i) => i + 1),
    step_ns: change.map(() => 1e9),
  });
  assert.deepEqual(scopeOf(steps([0, 0]), 0), { from: 0, since: -Infinity, words: "in view" });
  const since = { from: 2, since: 2, words: "in view since change 1" }; // ends at 3 s, takes 1 s
  assert.deepEqual(scopeOf(steps([0, 0, 1, 1]), 1), since);
  // A switch is flipped, and no step ran under it yet; or the view shows an earlier time.
  assert.equal(scopeOf(steps([0, 0]), 1).words, "in view under earlier settings");
  // Nobody counts changes, as in a loop of one's own; and rows of several settings.
  assert.equal(scopeOf(steps([NaN, NaN]), 0).words, "in view");
  assert.equal(scopeOf(steps([0, NaN]), 1).words, "in view, under several settings");
  assert.equal(scopeOf(steps([]), 1).words, "in view");
});

test("rates of the machine are called the machine's", () => {
  const input = CHARTS.find((one) => one.id === "input");
  const title = (/** @type {Record<string, number>} */ rates) =>
    input.title({ columns: {}, reasons: {}, words: "in view", share: () => null,
      median: (/** @type {string} */ name) => rates[name] ?? null });
  assert.equal(
    title({ disk_read_bytes_s: 0, network_in_bytes_s: 147_000 }),
    "The machine reads nothing from storage, receives 147 kB/s from the network",
  );
  assert.equal(title({ network_in_bytes_s: 2e6 }), "The machine receives 2.00 MB/s from the network");
  assert.equal(title({}), "Storage and network: not measured");
});

test("a step under the profiler is not counted", () => {
  const step = CHARTS.find((one) => one.id === "step");
  const columns = { step_ns: [1e7, NaN, 1e7], pooled: [1, 0, 1] };
  assert.equal(step.about({ columns, words: "in view" }), "median of 2 steps in view");
  const older = { step_ns: [1e7, 1e7], pooled: [10, 1] };
  assert.equal(
    step.about({ columns: older, words: "in view" }),
    "median of 11 steps in view, older ones as means of several",
  );
});

test("a click that was lost says so, and the link recovers", async () => {
  const sent = [];
  const link = new Link({ send: (one) => sent.push(one) }, () => {});
  clearInterval(link.timer);
  const answer = link.ask({ kind: "pause" });
  link.untaken.set(sent[0].ticket, performance.now() - 100); // sent before the ping, and lost
  link.ping();
  link.hear({ kind: "answer", ticket: "ping" });
  assert.deepEqual(await answer, { error: LOST });
  assert.equal(link.lost, true);
  assert.equal(link.untaken.size, 0);
  link.ask({ kind: "pause" });
  assert.equal(link.lost, false);
});

test("ticks are written without zeros that say nothing", () => {
  assert.equal(tickText("20.0 ms"), "20 ms");
  assert.equal(tickText("0 ns"), "0");
  assert.equal(tickText("1.50 GB"), "1.50 GB");
});

test("a burst is shaded from its first to its last moment, and at least two pixels wide", () => {
  /** @type {number[][]} */
  const rects = [];
  const keep = (/** @type {number[]} */ ...box) => rects.push(box);
  const ignore = () => {};
  const canvas = new Proxy(/** @type {any} */ ({ fillRect: keep, measureText: () => ({ width: 5 }) }), {
    get: (target, name) => target[name] ?? ignore,
    set: () => true,
  });
  const theme = { ink: "#000", quiet: "#777", line: "#ccc", ground: "#fff", font: "sans" };
  /** @type {import("../../workbench/widgets/panel/chart.js").Drawing} */
  const empty = {
    ...{ xs: [], series: [], stacked: false, top: 1, domain: [0, 10], gap: 1 },
    write: String,
  };
  const bands = [{ from: 2, to: 4 }, { from: 5, to: 5 }, { from: -3, to: -1 }];
  draw(canvas, 64 + 1000 + 8, 160, empty, [], bands, null, theme); // 100 pixels a second from 64 on
  assert.deepEqual(rects.map(([x, , width]) => [x, width]), [[264, 200], [564, 2]]);
});
