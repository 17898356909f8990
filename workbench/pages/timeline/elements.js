/** Small makers of elements. Text from traces goes through `textContent`, never through HTML. */

/**
 * @param {string} tag @param {string} [className] @param {string} [text] @returns {HTMLElement}
 */
export function element(tag, className = "", text = "") {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}

/** @param {string} text @param {string} title what it does, in words @param {() => void} act */
export function button(text, title, act) {
  const made = /** @type {HTMLButtonElement} */ (element("button", "", text));
  made.type = "button";
  made.title = title;
  if (!/[a-z]{2}/i.test(text)) made.setAttribute("aria-label", title);
  made.addEventListener("click", act);
  return made;
}

/** A patch of a category's colour, striped where nobody knows the cause.
 * @param {import("./decode.js").Category} category */
export function patch(category) {
  const made = element("span", category.hatched ? "wbt-patch wbt-hatched" : "wbt-patch");
  made.style.backgroundColor = category.colour;
  made.setAttribute("aria-hidden", "true");
  return made;
}

/** Rows of cells; numbers to the right. @param {string} caption @param {string[]} heads
 * @param {(string | Node)[][]} rows @param {number[]} numeric columns of numbers */
export function tableOf(caption, heads, rows, numeric) {
  const table = element("table");
  table.append(element("caption", "", caption));
  const head = element("tr");
  heads.forEach((text, at) => {
    const cell = element("th", numeric.includes(at) ? "wbt-number" : "", text);
    cell.setAttribute("scope", "col");
    head.append(cell);
  });
  const top = element("thead");
  top.append(head);
  const body = element("tbody");
  for (const row of rows) {
    const line = element("tr");
    row.forEach((content, at) => {
      const cell = element("td", numeric.includes(at) ? "wbt-number" : "");
      cell.append(content);
      line.append(cell);
    });
    body.append(line);
  }
  table.append(top, body);
  return table;
}
