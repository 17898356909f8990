/** Finding events by name. */

/** @typedef {import("./decode.js").Scene} Scene */

/**
 * @typedef {object} Found
 * @property {Uint8Array} label  1 for the labels that match.
 * @property {Int32Array} events  Matching events that are drawn.
 * @property {boolean} sorted  Whether these are in order of time: they are when one is gone to.
 * @property {number} recorded  Matching events that were recorded.
 */

/** Every word of the query must stand in the name, whatever its case.
 * @param {Scene} scene @param {string} query @returns {Found | null} null: nothing is looked for */
export function search(scene, query) {
  const words = query.toLowerCase().split(/\s+/).filter((word) => word !== "");
  if (words.length === 0) return null;
  const name = scene.names.map((each) => {
    const text = each.toLowerCase();
    return words.every((word) => text.includes(word));
  });
  const label = Uint8Array.from(scene.nameOf, (at) => Number(name[at]));
  let count = 0;
  for (let i = 0; i < scene.length; i += 1) count += label[scene.label[i]];
  const events = new Int32Array(count);
  for (let i = 0, at = 0; i < scene.length; i += 1) if (label[scene.label[i]]) events[at++] = i;
  const recorded = scene.totals
    ? scene.totals.reduce((sum, each, at) => sum + (label[at] ? each : 0), 0)
    : count;
  return { label, events, sorted: false, recorded: Math.max(recorded, count) };
}

/** The match before or after an instant; wraps around. @param {Scene} scene @param {Found} found
 * @param {number} at index of the present match, or -1 @param {number} step 1 or -1 */
export function nextMatch(scene, found, at, step) {
  const count = found.events.length;
  if (count === 0) return -1;
  if (!found.sorted) found.events.sort((x, y) => scene.start[x] - scene.start[y]);
  found.sorted = true;
  return at < 0 ? (step > 0 ? 0 : count - 1) : (at + step + count) % count;
}
