/** Numbers for people, as `workbench.units` writes them: three digits, and the unit that suits. */

export const NOT_MEASURED = "not measured";
const THIN_SPACE = "\u2009";

/** @type {[number, string][]} */
const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
/** @type {[number, string][]} */
const SIZES = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]];

/** @param {number} value @returns {string} */
function grouped(value) {
  return value.toFixed(0).replace(/\B(?=(\d{3})+(?!\d))/g, THIN_SPACE);
}

/** @param {number | null | undefined} value @returns {value is number} */
export function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

/** Three significant digits, no exponent. @param {number} value @returns {string} */
export function significant(value) {
  if (value === 0) return "0";
  const rounded = Number(value.toPrecision(3));
  const size = Math.abs(rounded);
  if (size >= 100) return grouped(rounded);
  const decimals = Math.min(12, Math.max(0, 2 - Math.floor(Math.log10(size))));
  const text = rounded.toFixed(decimals);
  return decimals > 2 ? text.replace(/\.?0+$/, "") : text;
}

/** @param {number | null | undefined} value @param {[number, string][]} scale */
function scaled(value, scale) {
  if (!isNumber(value)) return NOT_MEASURED;
  const last = scale[scale.length - 1];
  const [size, unit] = scale.find(([one]) => Math.abs(value) >= one * 0.9995) ?? last;
  return `${significant(value / size)} ${unit}`;
}

/** @param {number | null | undefined} ns */
export function timeText(ns) {
  return scaled(ns, TIMES);
}

/** @param {number | null | undefined} count */
export function bytesText(count) {
  return scaled(count, SIZES);
}

/** @param {number | null | undefined} perSecond */
export function rateText(perSecond) {
  return isNumber(perSecond) ? `${scaled(perSecond, SIZES)}/s` : NOT_MEASURED;
}

/** One decimal below 10 %, none above. @param {number | null | undefined} share */
export function shareText(share) {
  if (!isNumber(share)) return NOT_MEASURED;
  const percent = share * 100;
  if (percent > 0 && percent < 0.05) return "< 0.1 %";
  return Math.abs(Number(percent.toFixed(1))) < 10
    ? `${percent.toFixed(1)} %`
    : `${percent.toFixed(0)} %`;
}

/** @param {number | null | undefined} count */
export function countText(count) {
  return isNumber(count) ? grouped(count) : NOT_MEASURED;
}

/** A number without a unit, such as a loss. @param {number | null | undefined} value */
export function plainText(value) {
  return isNumber(value) ? significant(value) : NOT_MEASURED;
}

/** Time of day of a training: 0:07, 12:45, 1:02:03. @param {number} seconds */
export function clockText(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}
