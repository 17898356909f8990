/** What a panel knows: shared by all its views, kept while none is shown. */

import { unpack } from "./wire.js";
import { Ring } from "./ring.js";

export const STEPS_KEPT = 10000;
const SYSTEM_KEPT = 4800;
const STEP_COLUMNS = [
  ...["step", "at_s", "step_ns", "input_ns", "forward_ns", "backward_ns", "optimizer_ns"],
  ...["other_ns", "loss", "samples", "change", "pooled"],
];
const SYSTEM_COLUMNS = [
  ...["at_s", "device_share", "device_bytes", "device_power_w", "device_clock_hz", "cpu_share"],
  ...["cpu_busiest", "rss_bytes", "disk_read_bytes_s", "disk_write_bytes_s"],
  ...["network_in_bytes_s", "queue_depth"],
];

export class Store {
  constructor() {
    /** @type {Record<string, any>} */
    this.sections = {};
    this.steps = new Ring(STEP_COLUMNS, STEPS_KEPT);
    this.system = new Ring(SYSTEM_COLUMNS, SYSTEM_KEPT);
    /** @type {Set<(content: any) => void>} */
    this.listeners = new Set();
    this.messages = 0;
  }

  /** @param {any} content @param {(DataView | Uint8Array | ArrayBuffer)[]} buffers */
  take(content, buffers) {
    this.messages += 1;
    if (content.kind === "update") {
      Object.assign(this.sections, content.sections ?? {});
      if (content.steps) this.fill(this.steps, content.steps, buffers.slice(0, 2));
      if (content.system) this.fill(this.system, content.system, buffers.slice(-2));
    }
    for (const listener of this.listeners) listener(content);
  }

  /**
   * @param {Ring} ring @param {import("./wire.js").Block} block
   * @param {(DataView | Uint8Array | ArrayBuffer)[]} buffers
   */
  fill(ring, block, buffers) {
    if (block.reset) ring.clear();
    ring.push(unpack(block, buffers), block.count);
  }
}
