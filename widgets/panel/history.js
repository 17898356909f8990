/** The Runs on disk: look at one, compare, report, delete. */

import { make, refill, say, tableOf } from "./dom.js";

/**
 * @typedef {{name: string, created: string, settings: string, step: string, size: string,
 *   note: string, verdict: string, mark: string}} Row
 * @typedef {{rows: Row[], baseline: string | null, folder: string, left_out: number}} Runs
 */

const RUN_HEADS = ["Run", "Settings", "Median step of record", "Against the baseline", "Note", "Actions"];

export class HistoryView {
  /** @param {import("./header.js").Act} act @param {(answer: any) => void} open */
  constructor(act, open) {
    this.act = act;
    this.open = open;
    this.baseline = make("select");
    this.baseline.addEventListener("change", () => {
      act({ kind: "baseline", name: this.baseline.value || null });
    });
    this.list = make("div", { class: "wb-scroll" });
    this.where = make("span", { class: "wb-quiet" });
    const pick = make("label", {}, "Baseline ", this.baseline);
    this.tools = make("div", { class: "wb-row" }, pick, this.where);
    const heading = make("h3", { text: "Runs on disk" });
    this.element = make("section", { "aria-label": "Runs on disk" }, heading, this.tools, this.list);
    this.known = "";
    /** @type {string | null} */
    this.doomed = null;
  }

  /** @param {Runs} runs @param {boolean} dead */
  show(runs, dead) {
    const known = JSON.stringify([runs, dead, this.doomed]);
    if (known === this.known) return;
    this.known = known;
    const more = runs.left_out ? ` (${runs.left_out} older ones not listed)` : "";
    say(this.where, `in ${runs.folder}${more}; they survive a restart of the kernel.`);
    const names = runs.rows.map((row) => new Option(row.name, row.name));
    this.baseline.replaceChildren(new Option("none", ""), ...names);
    this.baseline.value = runs.baseline ?? "";
    this.tools.hidden = runs.rows.length === 0;
    if (runs.rows.length === 0) {
      const text = `No Run in ${runs.folder} yet: a burst records one.`;
      this.list.replaceChildren(make("p", { class: "wb-quiet", text }));
      return;
    }
    refill(this.list, [tableOf(RUN_HEADS, runs.rows.map((row) => this.row(row, runs, dead)))]);
  }

  /** @param {Row} row @param {Runs} runs @param {boolean} dead */
  row(row, runs, dead) {
    const note = make("input", { type: "text", "aria-label": `Note on ${row.name}`, placeholder: "note", maxlength: "500" });
    note.value = row.note;
    note.disabled = dead;
    note.dataset.key = `note-${row.name}`;
    note.addEventListener("change", () => this.act({ kind: "note", name: row.name, text: note.value }));
    const verdict = row.name === runs.baseline ? "baseline" : row.verdict;
    const recorded = make("small", { class: "wb-note", text: row.created });
    return [
      make("th", { scope: "row" }, make("div", { text: row.name }), recorded),
      make("td", { text: row.settings }),
      make("td", { class: "wb-number", text: row.step }),
      make("td", { class: "wb-effect", text: verdict, "data-verdict": row.mark }),
      make("td", {}, note),
      make("td", {}, this.actions(row, runs, dead)),
    ];
  }

  /** @param {Row} row @param {Runs} runs @param {boolean} dead */
  actions(row, runs, dead) {
    const button = (
      /** @type {string} */ text,
      /** @type {string} */ kind,
      /** @type {() => void} */ onclick,
      disabled = false,
    ) => {
      const attributes = { text, onclick, "data-key": `${kind}-${row.name}`, disabled: dead || disabled };
      return make("button", { ...attributes, "aria-label": `${text} ${row.name}` });
    };
    const ask = (/** @type {string} */ kind) => async () =>
      this.open(await this.act({ kind, name: row.name }));
    if (this.doomed === row.name) {
      const remove = () => {
        this.doomed = null;
        this.act({ kind: "delete", name: row.name });
      };
      const spare = () => {
        this.doomed = null;
        this.known = "";
        this.show(runs, dead);
      };
      const question = make("span", { text: `Delete ${row.size} from disk?` });
      return make("div", { class: "wb-row" }, question, button("Delete", "sure", remove), button("Keep", "spare", spare));
    }
    const doom = () => {
      this.doomed = row.name;
      this.show(runs, dead);
    };
    const alone = runs.baseline === null || runs.baseline === row.name;
    return make(
      "div",
      { class: "wb-row" },
      button("Open", "open", ask("open")),
      button("Timeline", "timeline", ask("timeline")),
      button("Compare", "compare", ask("compare"), alone),
      button("Report", "report", ask("report")),
      button("Delete…", "delete", doom),
    );
  }
}
