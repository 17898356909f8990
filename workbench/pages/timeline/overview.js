/** The whole scene in a strip above the lanes. */

import { FAINTEST, FAINTEST_GAP } from "./draw.js";
import { coverRow } from "./rows.js";
import { SHADES } from "./theme.js";

/** @typedef {import("./decode.js").Scene} Scene */

/** The whole scene in a strip: for each device what works, and below it what it waits for.
 * @param {CanvasRenderingContext2D} pen @param {Scene} scene
 * @param {import("./theme.js").Shades} shades @param {number} width @param {number} height
 * @param {number} ratio */
export function overview(pen, scene, shades, width, height, ratio) {
  const columns = Math.max(1, Math.round(width * ratio));
  pen.canvas.width = columns;
  pen.canvas.height = Math.round(height * ratio);
  const bands = overviewBands(scene);
  const high = pen.canvas.height / Math.max(bands.length, 1);
  const cover = new Float32Array(columns);
  const kind = new Int16Array(columns);
  const event = new Int32Array(columns);
  bands.forEach((tracks, at) => {
    const idle = tracks.some((track) => track.kind === "idle") ? 0.3 : 0;
    for (const track of tracks) {
      const gap = track.kind === "idle";
      const top = Math.round((at + (gap ? 1 - idle : 0)) * high);
      const tall = Math.max(1, Math.round(high * (gap ? idle : 1 - idle)) - 1);
      coverRow(track.rows[0], scene.from, (scene.to - scene.from) / columns, cover, kind, event);
      for (let x = 0; x < columns; x += 1) {
        if (kind[x] < 0) continue;
        pen.globalAlpha = Math.max(gap ? FAINTEST_GAP : FAINTEST, cover[x]);
        pen.fillStyle = shades.css[kind[x] * SHADES];
        pen.fillRect(x, top, 1, tall);
      }
    }
  });
  pen.globalAlpha = 1;
}

/** The tracks of each band: of a device, else of the loop, else of the threads.
 * @param {Scene} scene @returns {import("./decode.js").Track[][]} */
export function overviewBands(scene) {
  const devices = new Map();
  for (const track of scene.tracks) {
    if (track.kind !== "idle" && track.kind !== "stream") continue;
    const key = `${track.rank} ${track.device}`;
    devices.set(key, [...(devices.get(key) ?? []), track]);
  }
  if (devices.size > 0) return [...devices.values()].slice(0, 8);
  for (const kind of ["loop", "thread"]) {
    const found = scene.tracks.filter((track) => track.kind === kind);
    if (found.length > 0) return found.slice(0, 4).map((track) => [track]);
  }
  return [];
}
