/** Elements with text that is only ever text: names of models and traces are not trusted. */

/**
 * @param {string} tag @param {Record<string, string | boolean | EventListener>} [attributes]
 *   `on…` are listeners, `text` is the text, `false` leaves an attribute out
 * @param {(Node | string)[]} children @returns {any}
 */
export function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name.slice(2), value);
    else if (name === "text") made.textContent = String(value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false) made.setAttribute(name, value);
  }
  if (tag === "button" && !("type" in attributes)) made.setAttribute("type", "button");
  made.append(...children);
  return made;
}

/**
 * A table whose rows stand as blocks where it is narrow: the roles say what it is all the same.
 * @param {string[]} heads @param {HTMLElement[][]} rows cells, one for each head
 */
export function tableOf(heads, rows) {
  const head = heads.map((text) => make("th", { scope: "col", role: "columnheader", text }));
  const body = rows.map((cells) => {
    cells.forEach((cell, i) => {
      cell.dataset.head = heads[i];
      cell.setAttribute("role", cell.tagName === "TH" ? "rowheader" : "cell");
    });
    return make("tr", { role: "row" }, ...cells);
  });
  return make(
    "table",
    { class: "wb-blocks", role: "table" },
    make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...head)),
    make("tbody", { role: "rowgroup" }, ...body),
  );
}

/** Change a text only when it differs: screen readers announce every change. */
export function say(/** @type {HTMLElement} */ element, /** @type {string} */ text) {
  if (element.textContent !== text) element.textContent = text;
}

/** An id that no other panel of the page has. @param {string} name */
export function unique(name) {
  return `wb-${name}-${Math.random().toString(36).slice(2, 10)}`;
}

/** Replace children, but keep the focus on what had it when its `data-key` is still there. */
export function refill(/** @type {HTMLElement} */ parent, /** @type {Node[]} */ children) {
  const root = /** @type {Document | ShadowRoot} */ (parent.getRootNode());
  const focused = /** @type {HTMLElement | null} */ (root.activeElement ?? null);
  const key = focused && parent.contains(focused) ? focused.dataset.key : undefined;
  parent.replaceChildren(...children);
  if (key === undefined) return;
  const again = [...parent.querySelectorAll("[data-key]")].find(
    (one) => /** @type {HTMLElement} */ (one).dataset.key === key,
  );
  /** @type {HTMLElement | undefined} */ (again)?.focus();
}
