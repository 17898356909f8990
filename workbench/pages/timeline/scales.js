/** Ticks, instants and the visible stretch of time. */

import { THIN_SPACE, TIMES, grouped, roundStep } from "../numbers.js";

/** Instants of ticks with their text, told from the start of the trace in one unit.
 * @param {number} from @param {number} to @param {number} most
 * @returns {{at: number, text: string}[]} */
export function ticks(from, to, most) {
  const step = roundStep(to - from, most);
  const largest = Math.max(Math.abs(from), Math.abs(to));
  const [size, unit] = TIMES.find(([each]) => largest >= each) ?? TIMES[3];
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  const made = [];
  for (let n = Math.ceil(from / step); n * step <= to; n += 1) {
    const [whole, part] = ((n * step) / size).toFixed(decimals).split(".");
    const sign = whole.startsWith("-") ? "−" : "";
    const digits = grouped(Number(whole.replace("-", "")));
    made.push({ at: n * step, text: `${sign}${digits}${part ? `.${part}` : ""} ${unit}` });
  }
  return made;
}

/** An instant with digits down to the nanosecond, in ms. @param {number} ns */
export function instantText(ns) {
  const [whole, part] = (Math.abs(ns) / 1e6).toFixed(6).split(".");
  return `${ns < 0 ? "−" : ""}${grouped(Number(whole))}.${part.slice(0, 3)}${THIN_SPACE}${part.slice(3)} ms`;
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
