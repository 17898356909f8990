/** Which steps a sentence above a chart speaks of: those under the settings of the last one. */

import { isNumber } from "../../pages/numbers.js";

/**
 * Medians over steps of several settings would tell of none of them.
 * @param {Record<string, ArrayLike<number>>} steps in view; `change` is the number of the change in
 *   force, NaN where several became one row or nobody counts changes
 * @param {number} inForce number of the change that is in force now
 * @returns {{from: number, since: number, words: string}}
 */
export function scopeOf(steps, inForce) {
  const { change, at_s: at, step_ns: took } = steps;
  const all = { from: 0, since: -Infinity, words: "in view" };
  const length = change?.length ?? 0;
  const last = length ? change[length - 1] : NaN;
  if (!isNumber(last)) {
    const some = Array.from(change ?? []).some(isNumber);
    return some ? { ...all, words: "in view, under several settings" } : all;
  }
  let from = length - 1;
  while (from > 0 && change[from - 1] === last) from -= 1;
  const words = last !== inForce ? "in view under earlier settings" : since(from, last);
  const began = at[from] - (isNumber(took[from]) ? took[from] : 0) / 1e9;
  return { from, since: from > 0 ? began : -Infinity, words };
}

/** @param {number} from @param {number} change */
function since(from, change) {
  return from > 0 ? `in view since change ${change}` : "in view";
}
