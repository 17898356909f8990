/**
 * The timeline as an element: lanes on a canvas, native controls around it, words below it.
 *
 * `mount` is all that a host needs: the widget gives it a kernel to ask, a static page gives none.
 */

import { helpOf, legendOf, toolbarOf, twinOf } from "./controls.js";
import {
  categoryOf,
  counterText,
  eventPanel,
  nameOf,
  rangePanel,
  relatedTo,
  spoken,
} from "./details.js";
import { Painter, overviewBands } from "./draw.js";
import { RULER, drawFrame, drawOverview, drawRuler } from "./frame.js";
import { button, element, patch } from "./elements.js";
import { keys, pointers } from "./input.js";
import { arrange, keyOf, lineOf, rowOf } from "./layout.js";
import { grouped, shareText, timeText } from "../numbers.js";
import { Span, instantText } from "./scales.js";
import { nextMatch, search } from "./search.js";
import { summarise } from "./summary.js";
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
    this.labels();
    this.body.style.height = `${Math.min(MOST_HEIGHT, this.layout.height + 8)}px`;
    this.listen();
    this.span.fit();
    this.resize();
  }

  /** @param {HTMLElement} el */
  build(el) {
    this.root.setAttribute("aria-label", `Timeline of ${this.scene.title}`);
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

  /** Names beside the lanes; a thread's opens and folds its rows. */
  labels() {
    this.names.replaceChildren();
    for (const line of this.layout.lines) {
      if (line.kind !== "group") continue;
      const head = element("div", "wbt-name wbt-of", line.text ?? "");
      head.title = line.text ?? "";
      head.style.top = `${line.top}px`;
      head.style.height = `${line.height}px`;
      this.names.append(head);
    }
    for (const block of this.layout.blocks) {
      const name = block.track?.name ?? block.counter?.name ?? "";
      const made =
        block.track && block.hidden > 0
          ? this.folder(block.track, name, block)
          : element("div", "wbt-name", name);
      if (!(made instanceof HTMLButtonElement)) made.title = block.track?.note || name;
      made.style.top = `${block.top}px`;
      made.style.height = `${Math.max(block.height, 14)}px`;
      this.names.append(made);
    }
    this.stage.style.height = `${this.layout.height}px`;
    this.names.style.height = `${this.layout.height}px`;
  }

  /** @param {import("./decode.js").Track} track @param {string} name
   * @param {import("./layout.js").Block} block */
  folder(track, name, block) {
    const made = button("", name, () => this.open(track, !block.open));
    made.removeAttribute("aria-label");
    made.append(element("span", "", name));
    made.className = block.open ? "wbt-name wbt-open" : "wbt-name wbt-shut";
    made.setAttribute("aria-expanded", String(block.open));
    made.title = block.open ? "Fold the deeper rows away" : `Show ${block.hidden} deeper rows`;
    return made;
  }

  /** @param {import("./decode.js").Track} track @param {boolean} open */
  open(track, open) {
    this.opened.set(keyOf(track), open);
    this.layout = arrange(this.scene, this.opened);
    this.labels();
    const again = [...this.names.querySelectorAll("button")].find(
      (each) => each.textContent === track.name,
    );
    again?.focus();
    this.resize();
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
    on(this.query, "input", () => this.search(this.query.value));
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

  /** The step in the middle of the view; again: the next one. */
  fitStep() {
    const row = this.scene.tracks.find((track) => track.kind === "steps")?.rows[0];
    if (!row) {
      this.say("The trace marks no steps.");
      return;
    }
    const middle = (this.span.from + this.span.to) / 2;
    const { start, end } = this.scene;
    let at = row.first;
    while (at < row.last - 1 && end[at] <= middle) at += 1;
    const same = Math.abs(this.span.length / (end[at] - start[at]) - 1.08) < 0.01;
    if (same && at < row.last - 1) at += 1;
    this.show(start[at], end[at]);
    this.say(`${nameOf(this.scene, at)}: ${timeText(end[at] - start[at])}`);
  }

  fitSelection() {
    const { chosen, range, scene } = this;
    if (range) this.show(range.from, range.to);
    else if (chosen >= 0) this.show(scene.start[chosen], scene.end[chosen], 1);
    else this.say("Nothing is selected.");
  }

  /** @param {string} text */
  search(text) {
    this.found = search(this.scene, text);
    this.match = -1;
    this.told();
    this.paint();
  }

  told() {
    const { found } = this;
    if (!found) {
      this.count.textContent = "";
      return;
    }
    const drawn = found.events.length;
    const which = this.match >= 0 ? `${grouped(this.match + 1)} of ` : "";
    const more =
      found.recorded > drawn ? ` (${grouped(found.recorded)} recorded, others drawn together)` : "";
    this.count.textContent = `${which}${grouped(drawn)} ${drawn === 1 ? "match" : "matches"}${more}`;
    if (this.match < 0) this.say(this.count.textContent);
  }

  /** @param {number} step */
  toMatch(step) {
    if (!this.found) {
      this.query.focus();
      return;
    }
    this.match = nextMatch(this.scene, this.found, this.match, step);
    if (this.match >= 0) this.go(this.found.events[this.match]);
    this.told();
  }

  /** Selects an event and brings it into view. @param {number} event */
  go(event) {
    const row = rowOf(this.scene, event);
    if (!lineOf(this.layout, row)) {
      this.opened.set(keyOf(row.track), true);
      this.layout = arrange(this.scene, this.opened);
      this.labels();
    }
    const line = lineOf(this.layout, row);
    if (line && (line.top < this.body.scrollTop || line.top > this.body.scrollTop + this.height - 24)) {
      this.body.scrollTop = Math.max(0, line.top - this.height / 2);
    }
    const { start, end } = this.scene;
    const wide = ((end[event] - start[event]) / this.span.length) * this.width;
    const out = start[event] < this.span.from || end[event] > this.span.to;
    if (wide < 4 || wide > this.width || out) {
      const middle = (start[event] + end[event]) / 2;
      const half = Math.max((end[event] - start[event]) * 8, 2000);
      if (wide < 4 || wide > this.width) this.span.show(middle - half, middle + half);
      else this.span.show(middle - this.span.length / 2, middle + this.span.length / 2);
    }
    this.choose(event);
  }

  /** @param {number} event -1: none */
  choose(event) {
    this.chosen = event;
    this.range = null;
    this.related = event < 0 ? [] : relatedTo(this.scene, event);
    this.paint();
    this.sendSelection();
    if (event < 0) {
      this.panel.replaceChildren();
      return;
    }
    this.say(spoken(this.scene, event));
    const show = (/** @type {[string, string][]} */ more) => {
      const go = (/** @type {number} */ to) => this.go(to);
      const panel = eventPanel(this.scene, event, go, () => this.fitSelection(), more);
      this.panel.replaceChildren(panel);
    };
    show([]);
    this.ask(() => this.kernel?.details(event), (more) => more && more.length > 0 && show(more));
  }

  /** @param {Range | null} range */
  choosesRange(range) {
    this.chosen = -1;
    this.range = range;
    this.paint();
    this.sendSelection();
    if (!range) {
      this.panel.replaceChildren();
      return;
    }
    const own = summarise(this.scene, range.from, range.to);
    const show = (/** @type {import("./summary.js").Summary} */ summary, /** @type {string} */ source) => {
      const actions = element("div", "wbt-group");
      actions.append(
        button("Zoom to it", "Show the selection (F)", () => this.fitSelection()),
        button("Clear", "Clear the selection (Esc)", () => this.clear()),
      );
      this.panel.replaceChildren(rangePanel(this.scene, range, summary, source, [actions]));
      const most = summary.breakdowns[0]?.parts.reduce((a, b) => ((b.ns ?? 0) > (a.ns ?? 0) ? b : a));
      const said = most?.ns ? `, most of it ${most.label} (${shareText(most.ns / (range.to - range.from))})` : "";
      this.say(`${timeText(range.to - range.from)} selected${said}`);
    };
    show(own, "From what this page holds.");
    this.ask(
      () => this.kernel?.summary(range),
      (summary) => summary && show(summary, "From the whole trace, in the kernel."),
    );
  }

  /** Takes a late answer only while it is still asked for.
   * @template T @param {() => Promise<T> | undefined} question @param {(answer: T) => void} take */
  ask(question, take) {
    this.ticket += 1;
    const { ticket } = this;
    question()?.then((answer) => {
      if (ticket === this.ticket) take(answer);
    });
  }

  sendSelection() {
    if (!this.kernel) return;
    const { range, chosen, scene } = this;
    if (range) this.kernel.select({ from: range.from, to: range.to, event: -1 });
    else if (chosen >= 0) {
      this.kernel.select({ from: scene.start[chosen], to: scene.end[chosen], event: chosen });
    } else this.kernel.select(null);
  }

  clear() {
    this.choose(-1);
    this.say("Nothing is selected.");
  }

  /** What lies under the pointer, in a line beside it. @param {number} x @param {number} y
   * in the canvas; negative: nothing */
  hover(x, y) {
    this.pointerX = x;
    const event = x < 0 ? -1 : this.painter.pick(this.picture(), x, y);
    if (event !== this.hovered) {
      this.hovered = event;
      this.paint();
    }
    const words = x < 0 ? "" : this.words(event, x, y);
    this.tip.replaceChildren();
    this.tip.hidden = words === "";
    if (words === "") return;
    if (event >= 0) this.tip.append(patch(categoryOf(this.scene, event)));
    this.tip.append(words);
    const left = this.names.offsetWidth + x;
    const flip = left > this.root.clientWidth * 0.6;
    this.tip.style.left = flip ? "auto" : `${left + 14}px`;
    this.tip.style.right = flip ? `${this.root.clientWidth - left + 14}px` : "auto";
    this.tip.style.top = `${this.stripHeight + RULER + y + 18}px`;
  }

  /** @param {number} event @param {number} x @param {number} y */
  words(event, x, y) {
    if (event >= 0) {
      const length = timeText(this.scene.end[event] - this.scene.start[event]);
      const name = nameOf(this.scene, event);
      return `${name.length > 80 ? `${name.slice(0, 79)}…` : name} · ${length}`;
    }
    const line = this.layout.lines.find(
      (each) => y + this.body.scrollTop >= each.top && y + this.body.scrollTop < each.top + each.height,
    );
    if (!line?.counter) return "";
    return `${line.counter.name}: ${counterText(line.counter, this.time(x))} at ${instantText(this.time(x))}`;
  }

  /** The event before or after in its row, or around or inside it.
   * @param {"before" | "after" | "around" | "inside"} where */
  neighbour(where) {
    const { chosen, scene } = this;
    if (chosen < 0) {
      const row = this.layout.lines.find((line) => line.row)?.row;
      if (row) this.go(row.first);
      return;
    }
    const row = rowOf(scene, chosen);
    if (where === "before" && chosen > row.first) this.go(chosen - 1);
    else if (where === "after" && chosen < row.last - 1) this.go(chosen + 1);
    else if (where === "around" || where === "inside") {
      const other = row.track.rows[row.depth + (where === "inside" ? 1 : -1)];
      for (let i = other?.first ?? 0; other && i < other.last; i += 1) {
        const within =
          where === "inside"
            ? scene.start[i] >= scene.start[chosen] && scene.start[i] < scene.end[chosen]
            : scene.start[i] <= scene.start[chosen] && scene.end[i] > scene.start[chosen];
        if (within) {
          this.go(i);
          return;
        }
      }
      this.say(where === "inside" ? "Nothing lies inside." : "Nothing encloses it.");
    } else this.say("This is the last one in its row.");
  }
}

/** @param {HTMLElement} el @param {Scene} scene @param {Kernel | null} kernel */
export function mount(el, scene, kernel) {
  return new Timeline(el, scene, kernel);
}
