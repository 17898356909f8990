/** Colours: of the host's theme for text and ground, of the palette for what is drawn. */

/** @typedef {import("./decode.js").Category} Category */
/** @typedef {{ink: string, quiet: string, line: string, ground: string, focus: string,
 *   dark: boolean, font: string}} Theme */
/** @typedef {{rgb: Uint8Array, css: string[], text: string[]}} Shades */

/** Shades of one category, so that neighbours are told apart: three, by name. */
export const SHADES = 3;
const LIGHTER = [0, 0.14, -0.12];

/** Variables are resolved by the browser itself: a canvas does not understand `light-dark()`.
 * @param {HTMLElement} element that carries our class @returns {Theme} */
export function themeOf(element) {
  const probe = document.createElement("span");
  probe.hidden = true;
  element.append(probe);
  const read = (/** @type {string} */ name) => {
    probe.style.color = `var(--wbt-${name})`;
    return getComputedStyle(probe).color;
  };
  const theme = {
    ink: read("ink"),
    quiet: read("quiet"),
    line: read("line"),
    ground: read("ground"),
    focus: read("focus"),
    dark: false,
    font: getComputedStyle(element).fontFamily,
  };
  probe.remove();
  const ground = colourOf(theme.ground);
  theme.dark = 0.3 * ground[0] + 0.59 * ground[1] + 0.11 * ground[2] < 128;
  return theme;
}

/** @type {CanvasRenderingContext2D | null} */
let pen = null;

/** Any CSS colour as red, green, blue. @param {string} css @returns {number[]} */
function colourOf(css) {
  if (/^#[0-9a-f]{6}$/i.test(css)) return hexOf(css);
  pen ??= document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  if (!pen) return [255, 255, 255];
  pen.fillStyle = "#ffffff";
  pen.fillStyle = css;
  pen.fillRect(0, 0, 1, 1);
  return [...pen.getImageData(0, 0, 1, 1).data.slice(0, 3)];
}

/** @param {string} css as #RRGGBB @returns {number[]} */
export function hexOf(css) {
  return [1, 3, 5].map((at) => Number.parseInt(css.slice(at, at + 2), 16));
}

/** A colour moved towards white (above 0) or black (below 0).
 * @param {number[]} rgb @param {number} by @returns {number[]} */
export function shaded(rgb, by) {
  return rgb.map((each) => Math.round(by > 0 ? each + (255 - each) * by : each * (1 + by)));
}

/** @param {Category[]} categories @returns {Shades} */
export function shadesOf(categories) {
  const rgb = new Uint8Array(categories.length * SHADES * 3);
  /** @type {string[]} */
  const css = [];
  /** @type {string[]} */
  const text = [];
  categories.forEach((each, kind) => {
    const own = hexOf(each.colour);
    for (let shade = 0; shade < SHADES; shade += 1) {
      const made = shaded(own, LIGHTER[shade]);
      rgb.set(made, (kind * SHADES + shade) * 3);
      css.push(`rgb(${made.join(" ")})`);
      text.push(inkOn(made));
    }
  });
  return { rgb, css, text };
}

/** Black or white, whichever reads better. @param {number[]} rgb */
export function inkOn(rgb) {
  const linear = rgb.map((each) => {
    const c = each / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  const light = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  return (light + 0.05) / 0.05 > 1.05 / (light + 0.05) ? "#000000" : "#ffffff";
}
