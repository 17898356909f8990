/** Every switch that was changed, with the step times before and after it. */

import { make, tableOf } from "./dom.js";

/**
 * @typedef {{number: number, step: string, text: string, error: string | null, verdict: string,
 *   effect: string, note: string, before: string, after: string, at_s: number | null}} Row
 * @typedef {{rows: Row[], earlier: number, fields: Record<string, {verdict: string, text: string}>,
 *   in_force: number}} Changes
 */

const CHANGE_HEADS = ["No.", "Change", "From step", "Before", "After", "Effect"];

export class ChangesView {
  constructor() {
    this.list = make("div", { class: "wb-scroll" });
    const heading = make("h3", { text: "What the switches did" });
    this.element = make("section", { "aria-label": "What the switches did" }, heading, this.list);
    this.known = "";
  }

  /** @param {Changes} changes @param {boolean} readonly */
  show(changes, readonly) {
    this.element.hidden = readonly;
    const known = JSON.stringify(changes);
    if (known === this.known) return;
    this.known = known;
    if (changes.rows.length === 0) {
      const text = "Nothing was switched yet: flip one while the training runs, and read here what it did.";
      this.list.replaceChildren(make("p", { class: "wb-quiet", text }));
      return;
    }
    const rows = [...changes.rows].reverse().map((row) => {
      const effect = make("td", { class: "wb-effect", text: row.error ? `✕ ${row.error}` : row.effect });
      effect.dataset.verdict = row.verdict;
      const note = row.note ? [make("small", { class: "wb-note", text: row.note })] : [];
      const numbers = [row.step, row.before, row.after];
      return [
        make("td", {}, make("span", { class: "wb-flag", text: String(row.number) })),
        make("td", {}, make("div", { text: row.text }), ...note),
        ...numbers.map((text) => make("td", { class: "wb-number", text })),
        effect,
      ];
    });
    this.list.replaceChildren(tableOf(CHANGE_HEADS, rows));
    if (changes.earlier) {
      const text = `${changes.earlier} earlier ${changes.earlier === 1 ? "change is" : "changes are"} not shown.`;
      this.list.append(make("p", { class: "wb-quiet", text }));
    }
  }
}
