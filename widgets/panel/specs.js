/** What each live chart shows, and the sentence that it says above. */

import { NOT_MEASURED, bytesText, countText, isNumber, plainText, rateText, shareText, timeText } from "../../pages/numbers.js";
import { quantile } from "./scale.js";

/**
 * @typedef {Record<string, ArrayLike<number>>} Columns
 * @typedef {{name: string, label: string, look: string, dash?: boolean,
 *   of?(columns: Columns): Float64Array}} SeriesSpec
 * @typedef {{median(name: string): number | null, share(name: string): number | null,
 *   columns: Columns, reasons: Record<string, string>, words: string}} Seen
 * @typedef {{id: string, name: string, source: "steps" | "system", wide: boolean, stacked: boolean,
 *   top: "usual" | "long" | "share" | "most", series: SeriesSpec[], write(value: number | null): string,
 *   title(seen: Seen): string, about(seen: Seen): string}} ChartSpec
 */

/** So many losses, of the newest steps in view, are told as one. */
const LOSSES = 20;
const PARTS = ["input_ns", "forward_ns", "backward_ns", "optimizer_ns", "other_ns"];
/** @type {Record<string, string>} */
const PART_WORDS = {
  forward_ns: "The forward pass takes",
  backward_ns: "The backward pass takes",
  optimizer_ns: "The optimizer takes",
  other_ns: "Other host code takes",
};

/** The largest part of a step, in words; data first once it takes a tenth. @param {Seen} seen */
function partsTitle(seen) {
  const shares = PARTS.map((name) => /** @type {const} */ ([name, seen.share(name) ?? -1]));
  const input = shares[0][1];
  const [largest, share] = shares.reduce((a, b) => (b[1] > a[1] ? b : a));
  if (share < 0) return "Where a step goes: not measured";
  if (input >= 0.1 || largest === "input_ns") return `${shareText(input)} of a step waits for data`;
  return `${PART_WORDS[largest]} ${shareText(share)} of a step`;
}

/** @param {Seen} seen */
function stepTitle(seen) {
  const median = seen.median("step_ns");
  return median === null ? "Step time: no step yet" : `A step takes ${timeText(median)}`;
}

/** @param {Seen} seen */
function stepAbout(seen) {
  const values = seen.columns.step_ns;
  if (values.length === 0) return "Start the training to see it.";
  const pooled = Array.from(seen.columns.pooled);
  const several = pooled.some((one) => one > 1) ? ", older ones as means of several" : "";
  const late = values.length >= 20 ? ` · 95 % below ${timeText(quantile(values, 0.95))}` : "";
  return `median of ${stepsText(pooled)} ${seen.words}${several}${late}`;
}

/** How many steps were measured. @param {number[]} pooled by row */
function stepsText(pooled) {
  const count = pooled.reduce((sum, one) => sum + one, 0);
  return count === 1 ? "one step" : `${countText(count)} steps`;
}

/** @param {Seen} seen */
function partsAbout(seen) {
  const pooled = Array.from(seen.columns.pooled);
  return pooled.length ? `share of the time of ${stepsText(pooled)} ${seen.words}` : "";
}

/** @param {Seen} seen */
function useTitle(seen) {
  const device = seen.median("device_share");
  const host = seen.median("cpu_share");
  if (device !== null) return `The GPU is idle ${shareText(1 - device)} of the time`;
  if (host !== null) return `The machine's processors are ${shareText(host)} busy`;
  return `Use of the machine: ${NOT_MEASURED}`;
}

/** @param {Seen} seen */
function useAbout(seen) {
  if (seen.median("device_share") === null) {
    return seen.reasons.device ?? "GPU: not measured";
  }
  const power = seen.median("device_power_w");
  const clock = seen.median("device_clock_hz");
  const parts = [`in use ${shareText(seen.median("device_share"))}`];
  if (power !== null) parts.push(`${plainText(power)} W`);
  if (clock !== null) parts.push(`${plainText(clock / 1e6)} MHz`);
  return parts.join(" · ");
}

/** @param {Seen} seen */
function inputTitle(seen) {
  const read = seen.median("disk_read_bytes_s");
  const net = seen.median("network_in_bytes_s");
  const said = [];
  if (read !== null) said.push(`reads ${read < 1 ? "nothing" : rateText(read)} from storage`);
  if (net !== null) said.push(`receives ${net < 1 ? "nothing" : rateText(net)} from the network`);
  return said.length ? `The machine ${said.join(", ")}` : `Storage and network: ${NOT_MEASURED}`;
}

/** @param {Seen} seen */
function inputAbout(seen) {
  const depth = seen.median("queue_depth");
  const ready = depth === null ? NOT_MEASURED : plainText(depth);
  return `of all processes · batches ready in the loader: ${ready}`;
}

/** @param {Seen} seen */
function memoryTitle(seen) {
  const device = seen.columns.device_bytes;
  const host = seen.columns.rss_bytes;
  const last = (/** @type {ArrayLike<number> | undefined} */ values) =>
    values && values.length && Number.isFinite(values[values.length - 1])
      ? values[values.length - 1]
      : null;
  if (last(device) !== null) return `The process has ${bytesText(last(device))} of the GPU allocated`;
  if (last(host) !== null) return `The process holds ${bytesText(last(host))} now`;
  return `Memory: ${NOT_MEASURED}`;
}

/** @param {Seen} seen */
function lossTitle(seen) {
  const values = Array.from(seen.columns.loss ?? []).filter(isNumber);
  if (values.length === 0) return `Loss: ${NOT_MEASURED}`;
  return `The loss is ${plainText(quantile(values.slice(-LOSSES), 0.5))}`;
}

/** @param {Seen} seen */
function lossAbout(seen) {
  const values = Array.from(seen.columns.loss ?? []).filter(isNumber);
  if (values.length === 0) return "";
  return values.length === 1 ? "of one step" : `median of the last ${Math.min(LOSSES, values.length)} ${seen.words}`;
}

/** @param {Columns} columns @param {string} name */
function shareOfStep(columns, name) {
  const [part, whole] = [columns[name], columns.step_ns];
  return Float64Array.from(whole, (total, i) => (total > 0 ? Math.min(1, part[i] / total) : NaN));
}

/** @param {string} name @param {string} label @param {string} look @returns {SeriesSpec} */
function part(name, label, look) {
  return { name, label, look, of: (columns) => shareOfStep(columns, name) };
}

/** @type {ChartSpec[]} */
export const CHARTS = [
  {
    id: "step",
    name: "Step time",
    source: "steps",
    wide: true,
    stacked: false,
    top: "usual",
    series: [{ name: "step_ns", label: "step", look: "ink" }],
    write: timeText,
    title: stepTitle,
    about: stepAbout,
  },
  {
    id: "parts",
    name: "Where a step goes",
    source: "steps",
    wide: true,
    stacked: true,
    top: "share",
    series: [
      part("input_ns", "input", "input"),
      part("forward_ns", "forward", "forward"),
      part("backward_ns", "backward", "backward"),
      part("optimizer_ns", "optimizer", "optimizer"),
      part("other_ns", "other host code", "host_other"),
    ],
    write: shareText,
    title: partsTitle,
    about: partsAbout,
  },
  {
    id: "use",
    name: "Use of the machine",
    source: "system",
    wide: false,
    stacked: false,
    top: "share",
    series: [
      { name: "device_share", label: "GPU", look: "compute" },
      { name: "cpu_share", label: "processors", look: "host_operators" },
      { name: "cpu_busiest", label: "busiest core", look: "host_operators", dash: true },
    ],
    write: shareText,
    title: useTitle,
    about: useAbout,
  },
  {
    id: "input",
    name: "Storage and network",
    source: "system",
    wide: false,
    stacked: false,
    top: "most",
    series: [
      { name: "disk_read_bytes_s", label: "read", look: "storage" },
      { name: "disk_write_bytes_s", label: "written", look: "storage", dash: true },
      { name: "network_in_bytes_s", label: "from network", look: "communication" },
    ],
    write: rateText,
    title: inputTitle,
    about: inputAbout,
  },
  {
    id: "memory",
    name: "Memory",
    source: "system",
    wide: false,
    stacked: false,
    top: "most",
    series: [
      { name: "device_bytes", label: "GPU", look: "compute" },
      { name: "rss_bytes", label: "process", look: "host_operators" },
    ],
    write: bytesText,
    title: memoryTitle,
    about: (seen) =>
      seen.median("device_bytes") === null
        ? "with its median in view · GPU memory: not measured"
        : "with medians in view",
  },
  {
    id: "loss",
    name: "Loss",
    source: "steps",
    wide: false,
    stacked: false,
    top: "long",
    series: [{ name: "loss", label: "loss", look: "ink" }],
    write: plainText,
    title: lossTitle,
    about: lossAbout,
  },
];
