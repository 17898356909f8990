/** Times, ticks and numbers as people read them; the same rules as `workbench.units`. */

const THIN = "\u2009";
const UNITS = [
  { size: 1e9, name: "s" },
  { size: 1e6, name: "ms" },
  { size: 1e3, name: "µs" },
  { size: 1, name: "ns" },
];

/** Three significant digits, thousands with thin spaces. @param {number} value */
export function significant(value) {
  if (value === 0) return "0";
  const rounded = Number(value.toPrecision(3));
  if (Math.abs(rounded) >= 100) return grouped(Math.round(rounded));
  let decimals = 0;
  for (let size = Math.abs(rounded); size < 100 && decimals < 12; size *= 10) decimals += 1;
  const text = rounded.toFixed(decimals);
  return decimals > 2 ? text.replace(/0+$/, "").replace(/\.$/, "") : text;
}

/** @param {number} count */
export function grouped(count) {
  return String(count).replace(/\B(?=(\d{3})+$)/g, THIN);
}

/** A length such as `12.3 ms`. @param {number} ns */
export function timeText(ns) {
  const unit = UNITS.find((each) => Math.abs(ns) >= each.size * 0.9995) ?? UNITS[3];
  return `${significant(ns / unit.size)} ${unit.name}`;
}

/** A share such as `4.2 %` or `31 %`. @param {number} share */
export function shareText(share) {
  const percent = share * 100;
  if (percent > 0 && percent < 0.05) return "< 0.1 %";
  return Math.abs(Math.round(percent * 10) / 10) < 10
    ? `${percent.toFixed(1)} %`
    : `${percent.toFixed(0)} %`;
}

/** @param {number} bytes */
export function bytesText(bytes) {
  for (const [size, name] of /** @type {[number, string][]} */ ([
    [1e12, "TB"],
    [1e9, "GB"],
    [1e6, "MB"],
    [1e3, "kB"],
  ])) {
    if (Math.abs(bytes) >= size * 0.9995) return `${significant(bytes / size)} ${name}`;
  }
  return `${significant(bytes)} B`;
}

/** The step of ticks (1, 2 or 5 times a power of ten) that keeps them apart.
 * @param {number} span @param {number} most ticks @returns {number} */
export function tickStep(span, most) {
  const raw = span / Math.max(most, 1);
  const power = 10 ** Math.floor(Math.log10(raw));
  return power * ([1, 2, 5].find((each) => each * power >= raw) ?? 10);
}

/** Instants of ticks with their text, told from the start of the trace in one unit.
 * @param {number} from @param {number} to @param {number} most
 * @returns {{at: number, text: string}[]} */
export function ticks(from, to, most) {
  const step = tickStep(to - from, most);
  const largest = Math.max(Math.abs(from), Math.abs(to));
  const unit = UNITS.find((each) => largest >= each.size) ?? UNITS[3];
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / unit.size) - 1e-9));
  const made = [];
  for (let n = Math.ceil(from / step); n * step <= to; n += 1) {
    const [whole, part] = ((n * step) / unit.size).toFixed(decimals).split(".");
    const sign = whole.startsWith("-") ? "−" : "";
    const digits = grouped(Number(whole.replace("-", "")));
    made.push({ at: n * step, text: `${sign}${digits}${part ? `.${part}` : ""} ${unit.name}` });
  }
  return made;
}

/** An instant with digits down to the nanosecond, in ms. @param {number} ns */
export function instantText(ns) {
  const [whole, part] = (Math.abs(ns) / 1e6).toFixed(6).split(".");
  return `${ns < 0 ? "−" : ""}${grouped(Number(whole))}.${part.slice(0, 3)}${THIN}${part.slice(3)} ms`;
}

/** A visible stretch of time, kept inside its bounds. */
export class Span {
  /** @param {number} low @param {number} high bounds */
  constructor(low, high) {
    this.low = low;
    this.high = high;
    this.from = low;
    this.to = high;
  }

  get length() {
    return this.to - this.from;
  }

  /** Shows a stretch; never less than 20 ns, never beyond the bounds and a little room.
   * @param {number} from @param {number} to */
  show(from, to) {
    const room = (this.high - this.low) * 0.02;
    const most = this.high - this.low + 2 * room;
    const length = Math.min(Math.max(to - from, 20), most);
    const middle = (from + to) / 2;
    const first = Math.max(this.low - room, Math.min(middle - length / 2, this.high + room - length));
    this.from = first;
    this.to = first + length;
  }

  /** @param {number} at instant that stays where it is @param {number} factor below 1: closer */
  zoom(at, factor) {
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  /** @param {number} share of the visible length */
  pan(share) {
    const by = this.length * share;
    this.show(this.from + by, this.to + by);
  }

  fit() {
    this.show(this.low, this.high);
  }
}
