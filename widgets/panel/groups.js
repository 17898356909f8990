/** The switches by group: each with its state, what it waits for, and what it did last time. */

import { fieldText, makeField, readField, writeField } from "../fields.js";
import { make, refill, say, unique } from "./dom.js";

/**
 * @typedef {import("../fields.js").Control & {yours: string | null, refused: string | null,
 *   values: Record<string, {state: string, reason: string | null}>}} Row
 * @typedef {{name: string, note: string | null, rows: Row[]}} Group
 * @typedef {{name: string, help: string, values: Record<string, any>, refused: string | null}} Preset
 * @typedef {{ready: boolean, groups: Group[], presets: Preset[]}} Offers
 * @typedef {Record<string, {verdict: string, text: string}>} Effects
 * @typedef {{row: Row, element: HTMLElement, field: import("../fields.js").Field,
 *   state: HTMLElement, effect: HTMLElement, error: HTMLElement}} Switch
 */

export class Groups {
  /** @param {import("./header.js").Act} act */
  constructor(act) {
    this.act = act;
    /** @type {Map<string, Switch>} */
    this.switches = new Map();
    /** @type {{details: HTMLDetailsElement, summary: HTMLElement, group: Group}[]} */
    this.groups = [];
    this.list = make("div", { class: "wb-groups" });
    this.summary = make("p", { class: "wb-quiet" });
    this.notes = make("div", { class: "wb-quiet" });
    this.undo = make("button", { text: "Undo", onclick: () => act({ kind: "undo" }) });
    this.reset = make("button", { text: "All as yours", onclick: () => this.send({}) });
    this.copy = make("button", { text: "Copy as code", onclick: () => this.askCode() });
    this.presets = make("select", { "aria-label": "Presets" });
    this.presets.addEventListener("change", () => this.choose());
    this.code = make("div", { class: "wb-code", hidden: true });
    this.fieldset = make("fieldset", { class: "wb-switches" });
    const tools = make("div", { class: "wb-four" }, this.presets, this.undo, this.reset, this.copy);
    this.fieldset.append(make("legend", { text: "Switches" }), this.summary, this.notes, tools, this.code);
    this.fieldset.append(this.list);
    this.element = this.fieldset;
    this.known = "";
    /** @type {Offers | null} */
    this.offers = null;
    /** @type {Record<string, any>} */
    this.wanted = {};
  }

  /** Ask for exactly these settings. @param {Record<string, any>} values */
  async send(values) {
    const answer = await this.act({ kind: "settings", values });
    return answer?.error ?? null;
  }

  choose() {
    const preset = this.offers?.presets[Number(this.presets.value)];
    this.presets.value = "";
    if (preset) this.send(preset.values);
  }

  async askCode() {
    const answer = await this.act({ kind: "code" });
    if (answer?.error) return;
    const text = make("textarea", { readonly: true, rows: "12", "aria-label": "The settings as code" });
    text.value = answer.result.code;
    const done = make("span", { role: "status" });
    const take = make("button", {
      text: "Copy",
      onclick: async () => {
        text.select();
        const copied = await navigator.clipboard?.writeText(text.value).then(
          () => true,
          () => false,
        );
        say(done, copied ? "Copied." : "Press Ctrl+C: the selected text is ready.");
      },
    });
    const close = make("button", { text: "Close", onclick: () => (this.code.hidden = true) });
    this.code.replaceChildren(text, make("div", { class: "wb-row" }, take, close, done));
    this.code.hidden = false;
    text.focus();
  }

  /** @param {Offers} offers */
  build(offers) {
    const known = JSON.stringify(offers);
    if (known === this.known) return;
    this.known = known;
    this.offers = offers;
    const open = this.groups.filter((one) => one.details.open).map((one) => one.group.name);
    this.switches.clear();
    this.groups = offers.groups.map((group, i) => this.makeGroup(group, open, i));
    refill(this.list, this.groups.map((one) => one.details));
    const choices = offers.presets.map((preset, i) => {
      const option = new Option(preset.refused ? `${preset.name}: not possible` : preset.name, String(i));
      option.disabled = preset.refused !== null;
      option.title = preset.refused ?? preset.help;
      return option;
    });
    this.presets.replaceChildren(new Option("Presets…", ""), ...choices);
  }

  /** @param {Group} group @param {string[]} open @param {number} i */
  makeGroup(group, open, i) {
    const count = make("span", { class: "wb-quiet" });
    const summary = make("summary", {}, make("strong", { text: group.name }), count);
    const rows = group.rows.map((row) => this.makeSwitch(row).element);
    const note = group.note === null ? [] : [make("p", { class: "wb-quiet", text: group.note })];
    const details = make("details", {}, summary, ...note, ...rows);
    details.open = open.length > 0 ? open.includes(group.name) : i === 0;
    return { details, summary: count, group };
  }

  /** @param {Row} row @returns {Switch} */
  makeSwitch(row) {
    const field = makeField(row, row.yours);
    const [id, help] = [unique(row.name), unique("help")];
    field.id = id;
    field.name = row.name;
    field.dataset.key = row.name;
    field.setAttribute("aria-describedby", help);
    if (field instanceof HTMLSelectElement) markOptions(field, row);
    const state = make("span", { class: "wb-state" });
    const effect = make("span", { class: "wb-effect" });
    const error = make("span", { class: "wb-error", role: "alert" });
    const label = make("label", { for: id, text: row.label });
    const words = make("small", { id: help, text: row.help });
    const about = make("span", { class: "wb-about" }, state, effect, error);
    const element = make("div", { class: "wb-switch" }, label, field, words, about);
    field.addEventListener("change", () => this.change(row.name));
    const made = { row, element, field, state, effect, error };
    this.switches.set(row.name, made);
    return made;
  }

  /** @param {string} name */
  async change(name) {
    const one = this.switches.get(name);
    if (!one) return;
    const value = readField(one.row, one.field);
    const values = { ...this.wanted, [name]: value };
    if (value === null) delete values[name];
    const error = await this.send(values);
    say(one.error, error ? `✕ ${error}` : "");
    if (error) writeField(one.row, one.field, this.wanted[name]);
  }

  /** @param {import("./header.js").Status} status @param {Effects} effects @param {boolean} dead */
  show(status, effects, dead) {
    this.fieldset.disabled = dead || !status.can.apply;
    this.element.hidden = status.readonly;
    this.wanted = status.pending ?? status.settings;
    const waits = status.pending === null ? "" : ` · pending: ${status.pending_text}`;
    say(this.summary, `In force: ${status.settings_text}${waits}`);
    const notes = (status.notes ?? []).map((text) => make("small", { text }));
    if (this.notes.textContent !== (status.notes ?? []).join("")) this.notes.replaceChildren(...notes);
    this.undo.disabled = !status.can.undo;
    const root = /** @type {Document | ShadowRoot} */ (this.element.getRootNode());
    for (const [name, one] of this.switches) {
      const [now, next] = [status.settings[name], this.wanted[name]];
      const pending = status.pending !== null && !same(now, next);
      if (root.activeElement !== one.field || one.field instanceof HTMLSelectElement) {
        writeField(one.row, one.field, next);
      }
      one.field.disabled = one.row.refused !== null && next === undefined;
      one.element.classList.toggle("wb-pending", pending);
      one.element.classList.toggle("wb-set", next !== undefined);
      one.element.classList.toggle("wb-refused", one.row.refused !== null);
      say(one.state, stateText(one.row, now, pending));
      one.state.hidden = !pending && one.row.refused === null && !one.state.textContent?.includes(":");
      const effect = effects[name];
      say(one.effect, effect ? effect.text : "");
      one.effect.dataset.verdict = effect?.verdict ?? "";
    }
    for (const { summary, group } of this.groups) {
      const set = group.rows.filter((row) => this.wanted[row.name] !== undefined).length;
      const empty = group.rows.length === 0 ? "not possible yet" : "as yours";
      say(summary, set ? `${set} switched` : empty);
    }
  }
}

/** @param {any} a @param {any} b */
function same(a, b) {
  return JSON.stringify(a ?? null) === JSON.stringify(b ?? null);
}

/** On, off, as yours or not possible; `value` is what is in force. */
export function stateText(
  /** @type {Row} */ row,
  /** @type {import("../fields.js").Value | undefined} */ value,
  /** @type {boolean} */ pending,
) {
  if (pending) return "◔ pending until the next step";
  if (row.refused !== null && value === undefined) return `not possible: ${row.refused}`;
  if (value === undefined || value === null) return "as yours";
  const word = fieldText(row, value);
  const judged = row.values[word];
  return judged && judged.state !== "possible" && judged.reason ? `${word}: ${judged.reason}` : word;
}

/** Say at each choice whether it can act here. @param {HTMLSelectElement} select @param {Row} row */
function markOptions(select, row) {
  for (const option of select.options) {
    const judged = row.values[option.value];
    if (!judged || judged.state === "possible") continue;
    const refused = judged.state === "refused";
    option.disabled = refused;
    option.textContent = `${option.value}: ${refused ? "not possible" : "may harm"}`;
    option.title = judged.reason ?? "";
  }
}
