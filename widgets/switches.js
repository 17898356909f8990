/**
 * Switches: a form with one native control for each setting.
 *
 * What the form shows goes to the kernel as a custom message with a ticket; the kernel answers
 * through the `_state` trait. The page never sets a trait.
 *
 * @typedef {boolean | number | string | (number | string)[] | null} Value  null: as the user has it
 * @typedef {"choice" | "switch" | "number" | "decimal" | "text" | "names" | "numbers"} Kind
 * @typedef {{name: string, label: string, help: string, kind: Kind, choices: string[]}} Control
 * @typedef {{values: Record<string, Value>, effective: Record<string, string>, summary: string,
 *   error: string | null, ticket: string | null}} State
 * @typedef {HTMLInputElement | HTMLSelectElement} Field
 * @typedef {{get(name: string): any, on(name: string, callback: () => void): void,
 *   off(name: string, callback: () => void): void, send(content: object): void}} Model
 */

/** After this long without an answer the form says that it waits. */
const PATIENCE_MS = 500;

const YOURS = "as yours";

/** @param {string} tag @param {string} text @returns {HTMLElement} */
function element(tag, text = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}

/** @param {Control} control @param {string | undefined} effective @returns {Field} */
function makeField(control, effective) {
  const yours = effective === undefined ? YOURS : `${YOURS} (${effective})`;
  if (control.kind !== "choice" && control.kind !== "switch") {
    const input = document.createElement("input");
    const number = control.kind === "number" || control.kind === "decimal";
    input.type = number ? "number" : "text";
    if (number) {
      input.min = "0";
      input.step = control.kind === "number" ? "1" : "any";
    }
    input.placeholder = yours;
    return input;
  }
  const options = control.kind === "switch" ? ["on", "off"] : control.choices;
  const select = document.createElement("select");
  select.append(new Option(yours, ""), ...options.map((name) => new Option(name, name)));
  return select;
}

/** @param {Control} control @param {Field} field @returns {Value} */
function read(control, field) {
  if (field.validity.badInput) return "not a number";
  const text = field.value.trim();
  if (text === "") return null;
  if (control.kind === "number" || control.kind === "decimal") return Number(text);
  if (control.kind === "switch") return text === "on";
  if (control.kind === "choice") return text === "off" ? false : text;
  if (control.kind === "text") return text;
  const parts = text.split(",").map((part) => part.trim()).filter((part) => part !== "");
  const whole = (/** @type {string} */ part) => (/^\d+$/.test(part) ? Number(part) : part);
  return control.kind === "numbers" ? parts.map(whole) : parts;
}

/** What stands for true: among several ways of being on, the first. @param {Control} control */
function onWord(control) {
  return control.kind === "switch" ? "on" : control.choices.filter((name) => name !== "off")[0];
}

/** @param {Control} control @param {Field} field @param {Value | undefined} value */
function write(control, field, value) {
  if (value === null || value === undefined) field.value = "";
  else if (Array.isArray(value)) field.value = value.join(", ");
  else if (typeof value === "boolean") field.value = value ? onWord(control) : "off";
  else field.value = String(value);
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
    const entries = controls.map((control, i) => [control.name, read(control, fields[i])]);
    model.send({ kind: "set", values: Object.fromEntries(entries), ticket });
    clearTimeout(timer);
    timer = setTimeout(() => {
      status.textContent = "Waiting for the kernel, which is busy or gone.";
    }, PATIENCE_MS);
  }

  function show() {
    /** @type {State} */
    const state = model.get("_state");
    if (ticket === null) controls.forEach((one, i) => write(one, fields[i], state.values[one.name]));
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
