/** Columns of numbers as a chart asks them: what is in view, its largest, its share of the whole. */

import { firstFrom } from "../../pages/sorted.js";
import { longTop, quantile, roundUp, usualTop } from "./scale.js";

/** @typedef {import("./ring.js").Ring} Ring */

/** @param {Ring} ring @param {[number, number]} domain @returns {Record<string, Float64Array>} */
export function cut(ring, domain) {
  const at = ring.column("at_s");
  const [from, to] = [domain[0], domain[1] + 1e-6].map((one) => firstFrom(at, 0, at.length, one));
  const names = ring.names.map((name) => [name, ring.column(name).subarray(from, to)]);
  return Object.fromEntries(names);
}

/** @param {Record<string, Float64Array>} columns @param {number} from a place */
export function rowsFrom(columns, from) {
  return Object.fromEntries(Object.entries(columns).map(([name, all]) => [name, all.subarray(from)]));
}

/** Index of the value that lies nearest. @param {ArrayLike<number>} sorted @param {number} wanted */
export function nearest(sorted, wanted) {
  const at = firstFrom(sorted, 0, sorted.length, wanted);
  if (at === 0) return 0;
  if (at >= sorted.length) return sorted.length - 1;
  return sorted[at] - wanted < wanted - sorted[at - 1] ? at : at - 1;
}

/** Part of all time: sums, not a mean of shares. */
export function totalShare(
  /** @type {ArrayLike<number> | undefined} */ part,
  /** @type {ArrayLike<number> | undefined} */ whole,
) {
  if (!part || !whole) return null;
  let [sum, total] = [0, 0];
  for (let i = 0; i < part.length; i += 1) {
    if (!Number.isFinite(part[i])) continue;
    sum += part[i];
    total += whole[i];
  }
  return total > 0 ? sum / total : null;
}

/** @param {{ys: ArrayLike<number>}[]} series @param {"usual" | "long" | "most"} how */
export function topOf(series, how) {
  const all = series.flatMap((one) => Array.from(one.ys));
  if (how === "usual") return usualTop(all);
  if (how === "long") return longTop(all);
  const most = quantile(all, 1);
  return most === null || most <= 0 ? 1 : roundUp(most * 1.1);
}
