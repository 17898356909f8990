/** Numbers for people, as `workbench.units` writes them: three digits, and the unit that suits. */

export const NOT_MEASURED = "not measured";
export const THIN_SPACE = "\u2009";

/** @typedef {[number, string][]} Units  Sizes in falling order, each with its name. */
/** @type {Units} */
export const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
/** @type {Units} */
const SIZES = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]];

/** @param {number | null | undefined} value @returns {value is number} */
export function isNumber(value) {
  return typeof value === "number" && Number.isFinite(value);
}

/** A whole number with thin spaces between thousands. @param {number} value @returns {string} */
export function grouped(value) {
  return value.toFixed(0).replace(/\B(?=(\d{3})+$)/g, THIN_SPACE);
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

/** @param {number | null | undefined} value @param {Units} units */
function scaled(value, units) {
  if (!isNumber(value)) return NOT_MEASURED;
  const last = units[units.length - 1];
  const [size, unit] = units.find(([one]) => Math.abs(value) >= one * 0.9995) ?? last;
  return `${significant(value / size)} ${unit}`;
}

/** A length such as `12.3 ms`. @param {number | null | undefined} ns */
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

/** One decimal below 10 %, none above; never 100 for less than all. @param {number | null | undefined} share */
export function shareText(share) {
  if (!isNumber(share)) return NOT_MEASURED;
  const percent = share * 100;
  if (percent > 0 && percent < 0.05) return "< 0.1 %";
  if (percent >= 99.5 && percent < 100) return `${Math.min(percent, 99.9).toFixed(1)} %`;
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

/**
 * The least of 1, 2 or 5 times a power of ten that gives at most `most` intervals.
 * @param {number} span @param {number} most @returns {number}
 */
export function roundStep(span, most) {
  if (!(span > 0)) return 1;
  const raw = span / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(raw));
  return power * ([1, 2, 5].find((each) => each * power >= raw * (1 - 1e-9)) ?? 10);
}
