/**
 * Switches: a form with one native control for each setting.
 *
 * What the form shows goes to the kernel as a custom message with a ticket; the kernel answers
 * through the `_state` trait. The page never sets a trait.
 *
 * @typedef {import("./fields.js").Value} Value
 * @typedef {import("./fields.js").Control} Control
 * @typedef {import("./fields.js").Field} Field
 * @typedef {{values: Record<string, Value>, effective: Record<string, string>, summary: string,
 *   error: string | null, ticket: string | null}} State
 * @typedef {{get(name: string): any, on(name: string, callback: () => void): void,
 *   off(name: string, callback: () => void): void, send(content: object): void}} Model
 */

import { makeField, readField, writeField } from "./fields.js";

/** After this long without an answer the form says that it waits. */
const PATIENCE_MS = 500;

/** @param {string} tag @param {string} text @returns {HTMLElement} */
function element(tag, text = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}

/** @param {Control} control @param {Field} field @returns {HTMLElement} */
function makeRow(control, field) {
  const row = element("label");
  const help = element("small", control.help);
  help.id = `workbench-${control.name}-${Math.random().toString(36).slice(2)}`;
  field.name = control.name;
  field.setAttribute("aria-label", control.label);
  field.setAttribute("aria-describedby", help.id);
  row.append(element("span", control.label), field, help);
  return row;
}

/** @param {{model: Model, el: HTMLElement}} context @returns {() => void} the clean-up */
function render({ model, el }) {
  /** @type {Control[]} */
  const controls = model.get("_controls");
  const fields = controls.map((one) => makeField(one, model.get("_state").effective[one.name]));
  const status = element("output");
  const error = element("p");
  error.setAttribute("role", "alert");
  const reset = /** @type {HTMLButtonElement} */ (element("button", "All as yours"));
  reset.type = "button";

  /** @type {string | null} */
  let ticket = null;
  let timer = 0;

  function send() {
    ticket = Math.random().toString(36).slice(2);
    const entries = controls.map((control, i) => [control.name, readField(control, fields[i])]);
    model.send({ kind: "set", values: Object.fromEntries(entries), ticket });
    clearTimeout(timer);
    timer = setTimeout(() => {
      status.textContent = "Waiting for the kernel, which is busy or gone.";
    }, PATIENCE_MS);
  }

  function show() {
    /** @type {State} */
    const state = model.get("_state");
    if (ticket === null) controls.forEach((one, i) => writeField(one, fields[i], state.values[one.name]));
    else if (state.ticket !== ticket) return; // the answer to this form's last message will come
    ticket = null;
    clearTimeout(timer);
    status.textContent = state.error ? "" : `Next run: ${state.summary}`;
    error.textContent = state.error ? `✕ ${state.error}` : "";
  }

  const form = /** @type {HTMLFormElement} */ (element("form"));
  form.className = "workbench-switches";
  form.setAttribute("aria-label", "Settings for the next run");
  form.dataset.lmSuppressShortcuts = "true"; // JupyterLab's keys stay out of the fields
  const grid = element("div");
  grid.append(...controls.map((control, i) => makeRow(control, fields[i])));
  const foot = element("footer");
  foot.append(reset, status);
  form.append(grid, error, foot);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", send);
  reset.addEventListener("click", () => {
    form.reset();
    send();
  });

  model.on("change:_state", show);
  show();
  el.append(form);
  return () => {
    clearTimeout(timer);
    model.off("change:_state", show);
  };
}

export default { render };
