/** One native control for each setting: drawn, read and written. */

/**
 * @typedef {boolean | number | string | (number | string)[] | null} Value  null: as the user has it
 * @typedef {"choice" | "switch" | "number" | "decimal" | "text" | "names" | "numbers"} Kind
 * @typedef {{name: string, label: string, help: string, kind: Kind, choices: string[]}} Control
 * @typedef {HTMLInputElement | HTMLSelectElement} Field
 */

const YOURS = "as yours";

/** @param {Control} control @param {string | null | undefined} effective @returns {Field} */
export function makeField(control, effective) {
  const yours = effective === undefined || effective === null ? YOURS : `${YOURS} (${effective})`;
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
export function readField(control, field) {
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

/** @param {Control} control @param {Value | undefined} value @returns {string} */
export function fieldText(control, value) {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.join(", ");
  if (typeof value === "boolean") return value ? onWord(control) : "off";
  return String(value);
}

/** @param {Control} control @param {Field} field @param {Value | undefined} value */
export function writeField(control, field, value) {
  field.value = fieldText(control, value);
}
