/**
 * The timeline as an element: lanes on a canvas, native controls around it, words below it.
 *
 * `mount` is all that a host needs: the widget gives it a kernel to ask, a static page gives none.
 */

import { helpOf, legendOf, toolbarOf, twinOf } from "./controls.js";
import { Painter } from "./draw.js";
import { RULER, drawFrame, drawOverview, drawRuler } from "./frame.js";
import { element } from "./elements.js";
import { searchFor } from "./finding.js";
import { keys, pointers } from "./input.js";
import { arrange } from "./layout.js";
import { nameLanes } from "./names.js";
import { overviewBands } from "./overview.js";
import { timeText } from "../numbers.js";
import { Span } from "./scales.js";
import { shadesOf, themeOf } from "./theme.js";

/** @typedef {import("./decode.js").Scene} Scene */
/** @typedef {{from: number, to: number}} Range */
/**
 * @typedef {object} Kernel  Answers from where the trace is.
 * @property {(selection: object | null) => void} select
 * @property {(range: Range) => Promise<import("./summary.js").Summary | null>} summary
 * @property {(event: number) => Promise<[string, string][]>} details
 */

/** Height of the overview: of up to three devices, and for each more. */
const STRIP = { least: 26, more: 6 };
const NAMES = 176;
const NARROW = 560;
/** Height of the lanes at first; the reader may drag the corner. */
const MOST_HEIGHT = 440;

/** @param {string} name @returns {HTMLCanvasElement} */
function canvasOf(name) {
  return /** @type {HTMLCanvasElement} */ (element("canvas", name));
}

/** Of several timelines of one Run in a page, each has a name of its own. @param {string} title */
function labelOf(title) {
  const names = [...document.querySelectorAll("section.wbt")].map((one) => one.getAttribute("aria-label"));
  const name = `Timeline of ${title}`;
  let number = 1;
  const made = () => (number > 1 ? `${name}, ${number}` : name);
  while (names.includes(made())) number += 1;
  return made();
}

export class Timeline {
  root = element("section", "wbt");
  canvas = canvasOf("wbt-lanes");
  ruler = canvasOf("wbt-ruler");
  strip = canvasOf("wbt-strip");
  whole = canvasOf("");
  names = element("div", "wbt-names");
  stage = element("div", "wbt-stage");
  body = element("div", "wbt-body");
  status = element("output", "wbt-status");
  panel = element("div", "wbt-panel");
  tip = element("div", "wbt-tip");
  count = element("span", "wbt-count");
  query = /** @type {HTMLInputElement} */ (element("input"));
  width = 0;
  stripHeight = STRIP.least;
  height = 0;
  ratio = 1;
  /** @type {number[]} */
  related = [];
  /** @type {Record<string, HTMLButtonElement>} */
  modes = {};

  /** @param {HTMLElement} el @param {Scene} scene @param {Kernel | null} kernel */
  constructor(el, scene, kernel) {
    this.scene = scene;
    this.kernel = kernel;
    this.span = new Span(scene.from, scene.to);
    /** @type {Map<string, boolean>} */
    this.opened = new Map();
    this.layout = arrange(scene, this.opened);
    this.shades = shadesOf(scene.categories);
    /** @type {"pan" | "select" | "zoom"} */
    this.mode = "pan";
    this.chosen = -1;
    this.hovered = -1;
    /** @type {Range | null} */
    this.range = null;
    /** @type {import("./search.js").Found | null} */
    this.found = null;
    this.match = -1;
    this.ticket = 0;
    this.frame = 0;
    this.painted = 0;
    this.pointerX = -1;
    /** @type {(() => void)[]} */
    this.undo = [];
    const bands = overviewBands(scene).length;
    this.stripHeight = STRIP.least + Math.max(0, bands - 3) * STRIP.more;
    this.build(el);
    this.theme = themeOf(this.root);
    this.painter = new Painter(this.canvas);
    nameLanes(this);
    this.body.style.height = `${Math.min(MOST_HEIGHT, this.layout.height + 8)}px`;
    this.listen();
    this.span.fit();
    this.resize();
  }

  /** @param {HTMLElement} el */
  build(el) {
    this.root.setAttribute("aria-label", labelOf(this.scene.title));
    this.root.dataset.lmSuppressShortcuts = "true"; // JupyterLab's keys stay out of it
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "application");
    this.canvas.setAttribute(
      "aria-label",
      "Lanes. W and S zoom, A and D or the arrows move, 0 shows everything, slash searches, " +
        "brackets go to the event before or after, Escape clears.",
    );
    for (const each of [this.ruler, this.strip]) each.setAttribute("aria-hidden", "true");
    this.stage.append(this.canvas);
    this.body.append(this.names, this.stage);
    this.status.setAttribute("role", "status");
    this.tip.setAttribute("aria-hidden", "true");
    const top = element("div", "wbt-top");
    const head = element("div", "wbt-head");
    head.append(this.strip, this.ruler);
    top.append(element("div", "wbt-corner"), head);
    const frame = element("div", "wbt-frame");
    frame.append(top, this.body, this.tip);
    this.root.append(element("p", "wbt-headline", this.scene.headline));
    this.root.append(toolbarOf(this), frame, this.status, this.panel, legendOf(this));
    for (const note of this.scene.notes) this.root.append(element("p", "wbt-quiet", note));
    this.root.append(helpOf(), twinOf(this));
    el.append(this.root);
  }

  listen() {
    const on = (
      /** @type {EventTarget} */ target,
      /** @type {string} */ type,
      /** @type {(event: any) => void} */ act,
      /** @type {AddEventListenerOptions} */ options = {},
    ) => {
      target.addEventListener(type, act, options);
      this.undo.push(() => target.removeEventListener(type, act, options));
    };
    pointers(this, on);
    keys(this, on);
    on(this.body, "scroll", () => this.paint());
    on(this.query, "input", () => searchFor(this, this.query.value));
    const watch = new ResizeObserver(() => this.resize());
    watch.observe(this.body);
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    on(scheme, "change", () => this.retheme());
    const themes = new MutationObserver(() => this.retheme());
    const told = { attributes: true, attributeFilter: ["data-jp-theme-name", "class", "style"] };
    themes.observe(document.body, told);
    themes.observe(document.documentElement, told);
    this.undo.push(
      () => watch.disconnect(),
      () => themes.disconnect(),
      () => cancelAnimationFrame(this.frame),
    );
  }

  remove() {
    for (const each of this.undo) each();
    this.root.remove();
  }

  retheme() {
    requestAnimationFrame(() => {
      this.theme = themeOf(this.root);
      this.resize();
    });
  }

  resize() {
    const narrow = this.root.clientWidth < NARROW;
    const side = narrow ? 96 : NAMES;
    this.root.style.setProperty("--wbt-side", `${side}px`);
    this.root.classList.toggle("wbt-narrow", side < 140);
    this.width = Math.max(80, this.stage.clientWidth || this.root.clientWidth - side);
    this.height = this.body.clientHeight || 320;
    this.ratio = Math.min(2, devicePixelRatio || 1);
    this.canvas.style.width = `${this.width}px`;
    this.canvas.style.height = `${this.height}px`;
    for (const [each, high] of /** @type {[HTMLCanvasElement, number][]} */ ([
      [this.ruler, RULER],
      [this.strip, this.stripHeight],
    ])) {
      each.style.width = `${this.width}px`;
      each.style.height = `${high}px`;
    }
    drawOverview(this);
    this.paint();
  }

  /** Draws with the next frame; many calls make one picture. */
  paint() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.drawNow();
    });
  }

  picture() {
    return {
      scene: this.scene,
      layout: this.layout,
      span: this.span,
      width: this.width,
      height: this.height,
      scroll: this.body.scrollTop,
      ratio: this.ratio,
      theme: this.theme,
      shades: this.shades,
      found: this.found,
      chosen: this.chosen,
      hovered: this.hovered,
      range: this.range,
      related: this.chosen >= 0 ? this.related : [],
    };
  }

  drawNow() {
    const started = performance.now();
    this.painter.draw(this.picture());
    drawRuler(this);
    drawFrame(this);
    this.painted = performance.now() - started;
    this.root.dataset.painted = String(Number(this.root.dataset.painted ?? 0) + 1);
  }

  /** @param {number} at */
  x(at) {
    return ((at - this.span.from) / this.span.length) * this.width;
  }

  /** @param {number} x */
  time(x) {
    return this.span.from + (x / this.width) * this.span.length;
  }

  /** @param {string} text */
  say(text) {
    this.status.textContent = text;
  }

  /** @param {"pan" | "select" | "zoom"} mode */
  setMode(mode) {
    this.mode = mode;
    for (const [name, each] of Object.entries(this.modes)) {
      each.setAttribute("aria-pressed", String(name === mode));
    }
    this.canvas.setAttribute("data-mode", mode);
  }

  /** @param {number} factor @param {number} [x] */
  zoom(factor, x = this.pointerX >= 0 ? this.pointerX : this.width / 2) {
    this.span.zoom(this.time(x), factor);
    this.paint();
  }

  /** @param {number} share */
  pan(share) {
    this.span.pan(share);
    this.paint();
  }

  fit() {
    this.span.fit();
    this.say(`Everything: ${timeText(this.scene.to - this.scene.from)}`);
    this.paint();
  }

  /** @param {number} from @param {number} to @param {number} [room] share left on each side */
  show(from, to, room = 0.04) {
    const by = (to - from) * room;
    this.span.show(from - by, to + by);
    this.paint();
  }
}

/** @param {HTMLElement} el @param {Scene} scene @param {Kernel | null} kernel */
export function mount(el, scene, kernel) {
  return new Timeline(el, scene, kernel);
}
