/** Scales, ticks and pixel bins of the charts: pure functions. */

import { roundStep } from "../../pages/numbers.js";

/**
 * @typedef {{domain: [number, number], range: [number, number],
 *   at(value: number): number, back(pixel: number): number}} Scale
 */

/** @param {[number, number]} domain @param {[number, number]} range @returns {Scale} */
export function linear(domain, range) {
  const span = domain[1] - domain[0] || 1;
  const factor = (range[1] - range[0]) / span;
  return {
    domain,
    range,
    at: (value) => range[0] + (value - domain[0]) * factor,
    back: (pixel) => domain[0] + (pixel - range[0]) / factor,
  };
}

/** Round values inside a domain. @param {[number, number]} domain @param {number} most */
export function ticks(domain, most) {
  const step = roundStep(domain[1] - domain[0], most);
  const found = [];
  for (let k = Math.ceil(domain[0] / step - 1e-9); k * step <= domain[1] + step * 1e-9; k += 1) {
    found.push(Number((k * step).toPrecision(12)));
  }
  return found;
}

const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800];

/** Ticks of seconds that people count in. @param {[number, number]} domain @param {number} most */
export function clockTicks(domain, most) {
  const span = domain[1] - domain[0];
  const step = SECONDS.find((one) => span / one <= most);
  if (span < 2 || step === undefined) return ticks(domain, most);
  const found = [];
  for (let t = Math.ceil(domain[0] / step) * step; t <= domain[1]; t += step) found.push(t);
  return found;
}

/** The value below which a share of the finite values lies; null without any. */
export function quantile(/** @type {ArrayLike<number>} */ values, /** @type {number} */ share) {
  const finite = Array.from(values).filter(Number.isFinite).sort((a, b) => a - b);
  if (finite.length === 0) return null;
  const place = share * (finite.length - 1);
  const low = Math.floor(place);
  const high = Math.min(finite.length - 1, low + 1);
  return finite[low] + (finite[high] - finite[low]) * (place - low);
}

/**
 * Top of a scale that starts at 0: room for what is usual, so that one step of ten seconds does
 * not press a thousand of ten milliseconds to the ground. What lies above is marked.
 * @param {ArrayLike<number>} values
 */
export function usualTop(values) {
  const usual = quantile(values, 0.95);
  const most = quantile(values, 1);
  if (usual === null || most === null || most <= 0) return 1;
  const top = most <= usual * 2 ? most * 1.1 : Math.max(usual * 1.5, most * 1e-6);
  return roundUp(top);
}

/**
 * Top of a scale that holds how a value began, but not single peaks: the most of any stretch.
 * @param {ArrayLike<number>} values
 */
export function longTop(values) {
  const there = Array.from(values).filter(Number.isFinite);
  const size = Math.max(1, Math.floor(there.length / 100));
  let most = 0;
  for (let i = 0; i < there.length; i += size) {
    const part = there.slice(i, i + size);
    most = Math.max(most, part.reduce((sum, one) => sum + one, 0) / part.length);
  }
  return most > 0 ? roundUp(most * 1.1) : 1;
}

/** Up to two digits, so that a scale does not move with every step. @param {number} value */
export function roundUp(value) {
  const unit = roundStep(value, 8);
  return Math.ceil(value / unit - 1e-9) * unit;
}

/**
 * Values by pixel: least, most and mean of those that fall on it, so that no outlier is hidden.
 * @typedef {{pixel: number, least: number, most: number, mean: number, count: number,
 *   from: number, to: number}} Bin  `from` and `to`: the first and the last x in it
 * @param {ArrayLike<number>} xs ascending @param {ArrayLike<number>} ys NaN: not measured
 * @param {Scale} x @param {number} width of a bin in pixels
 * @returns {Bin[]}
 */
export function bins(xs, ys, x, width = 1) {
  /** @type {Bin[]} */
  const made = [];
  let last = -Infinity;
  let sum = 0;
  for (let i = 0; i < xs.length; i += 1) {
    const value = ys[i];
    if (!Number.isFinite(value)) continue;
    const place = Math.floor(x.at(xs[i]) / width);
    if (place !== last) {
      const pixel = (place + 0.5) * width;
      const [from, to] = [xs[i], xs[i]];
      made.push({ pixel, least: value, most: value, mean: value, count: 1, from, to });
      last = place;
      sum = value;
      continue;
    }
    const bin = made[made.length - 1];
    sum += value;
    bin.count += 1;
    bin.to = xs[i];
    bin.mean = sum / bin.count;
    bin.least = Math.min(bin.least, value);
    bin.most = Math.max(bin.most, value);
  }
  return made;
}
