/** Places in a sorted column of numbers. */

/** First index from `low` on, below `high`, whose value is greater than `limit`.
 * @param {ArrayLike<number>} values sorted in [low, high) @param {number} low @param {number} high
 * @param {number} limit @returns {number} */
export function firstAbove(values, low, high, limit) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] > limit) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** First index whose value is at least `limit`. The same, for starts.
 * @param {ArrayLike<number>} values @param {number} low @param {number} high @param {number} limit */
export function firstFrom(values, low, high, limit) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle] >= limit) high = middle;
    else low = middle + 1;
  }
  return low;
}
