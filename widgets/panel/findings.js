/** What is wrong, worst first, with *Show me* and *Try it*; and how a trial came out. */

import { make, refill, say } from "./dom.js";

/**
 * @typedef {{id: string, mark: string, severity: string, title: string, advice: string,
 *   evidence: [string, string][], about: string, bound: string | null, setting: string | null,
 *   can_try: boolean, why_not: string | null, can_show: boolean}} Row
 * @typedef {{run: string | null, under: string | null, measured: string | null, rows: Row[],
 *   empty: string}} Findings
 * @typedef {{status: string, what: string, finding: string | null, running: boolean,
 *   sentence: string | null, advice: string | null, gain: string | null, parity: string | null,
 *   bound: string | null, error: string | null, kept: boolean | null}} Trial
 */

const FIRST = 3;

export class FindingsView {
  /** @param {import("./header.js").Act} act @param {(answer: any) => void} open */
  constructor(act, open) {
    this.act = act;
    this.open = open;
    this.trial = make("div", { class: "wb-trial", hidden: true });
    this.list = make("div", { class: "wb-listed" });
    this.heading = make("h3", { text: "Findings" });
    this.under = make("p", { class: "wb-under", hidden: true });
    this.measured = make("p", { class: "wb-quiet", hidden: true });
    const parts = [this.heading, this.trial, this.measured, this.under, this.list];
    this.element = make("section", { "aria-label": "Findings" }, ...parts);
    this.known = "";
    this.all = false;
  }

  /** @param {Findings} findings @param {Trial | null} trial @param {boolean} dead @param {boolean} readonly */
  show(findings, trial, dead, readonly) {
    const known = JSON.stringify([findings, trial, dead, readonly, this.all]);
    if (known === this.known) return;
    this.known = known;
    const from = findings.run ? ` in ${findings.run}` : "";
    say(this.under, findings.under ? `⚠ ${findings.under}` : "");
    this.under.hidden = !findings.under;
    say(this.measured, findings.measured ?? "");
    this.measured.hidden = !findings.measured;
    this.heading.textContent = `Findings${from}`;
    const shown = this.all ? findings.rows : findings.rows.slice(0, FIRST);
    const items = shown.map((row) => this.item(row, dead, readonly, trial?.running ?? false));
    const rest = findings.rows.length - shown.length;
    const made = [];
    if (items.length) made.push(make("ol", { class: "wb-findings" }, ...items));
    else made.push(make("p", { class: "wb-quiet", text: findings.empty }));
    if (rest > 0) {
      const text = `${rest} more finding${rest > 1 ? "s" : ""}`;
      const more = () => {
        this.all = true;
        this.show(findings, trial, dead, readonly);
      };
      made.push(make("button", { text, "data-key": "more", onclick: more }));
    }
    refill(this.list, made);
    this.showTrial(trial, dead);
  }

  /** @param {Row} row @param {boolean} dead @param {boolean} readonly @param {boolean} trying */
  item(row, dead, readonly, trying) {
    const rows = row.evidence.flatMap(([name, text]) => [make("dt", { text: name }), make("dd", { text })]);
    const evidence = make(
      "details",
      {},
      make("summary", { text: `Evidence, ${row.about}`, "data-key": `e-${row.id}` }),
      make("dl", {}, ...rows),
    );
    const show = async () => this.open(await this.act({ kind: "show", finding: row.id }));
    const attempt = () => this.act({ kind: "verify", finding: row.id });
    const buttons = make("div", { class: "wb-row" });
    if (row.can_show) {
      const name = `Show me: ${row.title}`;
      const attributes = { text: "Show me", "data-key": `s-${row.id}`, "aria-label": name, onclick: show };
      buttons.append(make("button", { ...attributes, disabled: dead }));
    }
    if (!readonly && row.can_try) {
      const name = `Try it: ${row.setting}`;
      const attributes = { text: "Try it", "data-key": `t-${row.id}`, "aria-label": name, onclick: attempt };
      buttons.append(make("button", { ...attributes, disabled: dead || trying }));
    }
    if (row.setting) buttons.append(make("code", { text: row.setting }));
    const gain = row.bound ? [make("p", { class: "wb-quiet", text: `Gain: ${row.bound}.` })] : [];
    const mark = make("div", { class: "wb-severity", text: row.mark });
    mark.dataset.severity = row.severity;
    const body = make(
      "div",
      {},
      make("p", { class: "wb-title", text: row.title }),
      make("p", { text: row.advice }),
      ...gain,
      buttons,
      evidence,
    );
    return make("li", {}, mark, body);
  }

  /** @param {Trial | null} trial @param {boolean} dead */
  showTrial(trial, dead) {
    this.trial.hidden = trial === null;
    if (trial === null) return;
    const act = (/** @type {string} */ kind) => () => this.act({ kind });
    const button = (/** @type {string} */ text, /** @type {string} */ kind) =>
      make("button", { text, "data-key": kind, disabled: dead, onclick: act(kind) });
    const said = trial.error ? `✕ ${trial.error}` : trial.sentence ?? `Trying ${trial.what}…`;
    const parts = [
      make("p", { class: "wb-quiet", text: `Trial of ${trial.what}` }),
      make("p", { class: "wb-title", role: "status", text: said }),
    ];
    if (trial.running) {
      const bar = make("progress", { "aria-label": "Trial in progress" });
      parts.push(make("div", { class: "wb-row" }, bar, button("Cancel", "cancel")));
    } else {
      const facts = /** @type {[string, string | null][]} */ ([
        ["Gain", trial.gain],
        ["At most", trial.bound],
        ["Numbers", trial.parity],
        ["Advice", trial.advice],
      ]).filter(([, text]) => text !== null);
      const rows = facts.flatMap(([name, text]) => [
        make("dt", { text: name }),
        make("dd", { text: String(text) }),
      ]);
      if (rows.length) parts.push(make("dl", {}, ...rows));
      const kept = trial.kept;
      if (kept === null && trial.sentence) {
        parts.push(make("div", { class: "wb-row" }, button("Keep it", "keep"), button("Revert", "revert")));
      } else {
        const text = kept === null ? "" : kept ? "Kept: it was put in force." : "Reverted: nothing was changed.";
        parts.push(make("div", { class: "wb-row" }, make("span", { text }), button("Close", "dismiss")));
      }
    }
    refill(this.trial, parts);
  }
}
