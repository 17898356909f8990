/** The live charts: one axis of time and one cursor for all of them. */

import { frameOf, draw, themeOf } from "./chart.js";
import { make, say, unique } from "./dom.js";
import { clockText } from "./clock.js";
import { countText, isNumber } from "../../pages/numbers.js";
import { firstFrom } from "../../pages/sorted.js";
import { cut, nearest, rowsFrom, topOf, totalShare } from "./columns.js";
import { pointing } from "./pointing.js";
import { linear, quantile } from "./scale.js";
import { scopeOf } from "./scope.js";
import { CHARTS } from "./specs.js";

/**
 * @typedef {import("./specs.js").ChartSpec} ChartSpec
 * @typedef {import("./ring.js").Ring} Ring
 * @typedef {{steps: Ring, system: Ring, reasons: Record<string, string>, marks: {at: number,
 *   label: string}[], bursts: {from_s: number, to_s: number | null}[], inForce: number, colours: Record<string, string>}} Source
 * @typedef {{from: number, since: number, words: string}} Scope  `from`: place of its first step,
 *   `since`: when that began; `words`: what the numbers above a chart cover
 * @typedef {{spec: ChartSpec, figure: HTMLElement, canvas: HTMLCanvasElement, title: HTMLElement,
 *   about: HTMLElement, legend: HTMLElement, values: Map<string, HTMLElement>}} Pane
 */

const SPANS = /** @type {const} */ ([["30 s", 30], ["2 min", 120], ["all", Infinity]]);
const GAP_S = 2;
/** Drawn at most ten times a second, whatever arrives. */
const DRAW_MS = 100;

export class Charts {
  /** @param {Source} source */
  constructor(source) {
    this.source = source;
    this.span = /** @type {number} */ (120);
    /** @type {[number, number] | null} */
    this.pinned = null;
    /** @type {number | null} */
    this.hover = null;
    /** @type {[number, number] | null} */
    this.drag = null;
    this.waiting = 0;
    this.drawn = 0;
    this.probe = make("i", { class: "wb-probe", "aria-hidden": "true" });
    this.panes = CHARTS.map((spec) => this.makePane(spec));
    this.table = make("tbody");
    this.element = make("section", { class: "wb-charts", "aria-label": "Live charts" });
    const grid = make("div", { class: "wb-grid" }, ...this.panes.map((pane) => pane.figure));
    this.element.append(this.makeTools(), grid, this.makeTable(), this.probe);
    this.observer = new ResizeObserver(() => this.ask());
    this.observer.observe(grid);
  }

  destroy() {
    clearTimeout(this.waiting);
    this.observer.disconnect();
  }

  /** Draw soon. */
  ask() {
    if (this.waiting) return;
    const wait = Math.max(0, DRAW_MS - (performance.now() - this.drawn));
    this.waiting = setTimeout(() => {
      this.waiting = 0;
      this.drawn = performance.now();
      if (this.element.isConnected) this.paint();
    }, wait);
  }

  /** @returns {HTMLElement} */
  makeTools() {
    const group = make("div", { class: "wb-segments", role: "group", "aria-label": "Time shown" });
    for (const [label, span] of SPANS) {
      const choose = () => this.show(span);
      const button = make("button", { text: label, onclick: choose });
      button.dataset.span = String(span);
      group.append(button);
    }
    this.segments = group;
    this.pause = make("button", { text: "Pause charts", onclick: () => this.toggle() });
    const help = "Drag to zoom, double-click for all. ● a burst was recorded. Keys: + − zoom, ← → cursor, 0 all, Space pause.";
    return make("div", { class: "wb-tools" }, group, this.pause, make("small", { text: help }));
  }

  makeTable() {
    const head = ["Series", "now", "median", "95 % below"].map((text) =>
      make("th", { scope: "col", text }),
    );
    this.caption = make("caption", { class: "wb-quiet" });
    const table = make("table", {}, this.caption, make("thead", {}, make("tr", {}, ...head)), this.table);
    const details = make("details", {}, make("summary", { text: "The numbers as a table" }), table);
    details.addEventListener("toggle", () => this.ask());
    this.details = details;
    return details;
  }

  /** @param {ChartSpec} spec @returns {Pane} */
  makePane(spec) {
    const id = unique(spec.id);
    const title = make("strong", { id, text: spec.name });
    const about = make("span", { class: "wb-quiet" });
    const legend = make("span", { class: "wb-legend" });
    const canvas = make("canvas", { "aria-hidden": "true" });
    const caption = make("figcaption", {}, title, about, legend);
    const figure = make("figure", { tabindex: "0", role: "group", "aria-labelledby": id }, caption);
    figure.append(make("div", { class: "wb-canvas" }, canvas));
    figure.classList.toggle("wb-wide", spec.wide);
    const values = new Map();
    for (const one of spec.series) {
      const swatch = make("i", { "data-look": one.look });
      const value = make("b");
      const entry = make("span", {}, swatch, `${one.label} `, value);
      if (one.dash) swatch.className = "wb-dashed";
      values.set(one.name, value);
      legend.append(entry);
    }
    const pane = { spec, figure, canvas, title, about, legend, values };
    pointing(this, pane);
    return pane;
  }

  /** @param {number} span */
  show(span) {
    this.span = span;
    this.pinned = null;
    this.ask();
  }

  toggle() {
    this.pinned = this.pinned ? null : this.domain();
    this.ask();
  }

  /** @param {[number, number]} range */
  pin(range) {
    const [first, last] = this.extent();
    const from = Math.max(first, Math.min(range[0], last - 0.01));
    this.pinned = [from, Math.max(from + 0.01, Math.min(range[1], last))];
    this.ask();
  }

  /** @returns {[number, number]} from the first to the last moment that is kept */
  extent() {
    const { steps, system } = this.source;
    const firsts = [steps, system].filter((one) => one.length).map((one) => one.column("at_s")[0]);
    const lasts = [steps, system].filter((one) => one.length).map((one) => one.last("at_s"));
    const first = firsts.length ? Math.min(...firsts) : 0;
    return [first, Math.max(first + 1, ...lasts)];
  }

  /** @returns {[number, number]} seconds shown */
  domain() {
    if (this.pinned) return this.pinned;
    const [first, last] = this.extent();
    const span = Math.min(this.span, Math.max(10, last - first));
    return [Math.max(first, last - span), Math.max(last, first + span)];
  }

  paint() {
    const domain = this.domain();
    const views = {
      steps: cut(this.source.steps, domain),
      system: cut(this.source.system, domain),
    };
    const listed = /** @type {HTMLElement[]} */ ([]);
    const scope = scopeOf(views.steps, this.source.inForce);
    say(this.caption, `Median and 95 % of what is ${scope.words}`);
    for (const pane of this.panes) {
      this.paintPane(pane, views[pane.spec.source], scope, domain, listed);
    }
    const pinned = this.pinned !== null;
    say(/** @type {HTMLElement} */ (this.pause), pinned ? "Follow again" : "Pause charts");
    for (const button of this.segments?.children ?? []) {
      const chosen = !pinned && /** @type {HTMLElement} */ (button).dataset.span === String(this.span);
      button.setAttribute("aria-pressed", String(chosen));
    }
    if (this.details.open) this.table.replaceChildren(...listed);
  }

  /** What the cursor stands on. @param {ChartSpec} spec @param {Record<string, Float64Array>} columns */
  momentText(spec, columns, /** @type {number} */ hover) {
    const at = `at ${clockText(columns.at_s[hover])}`;
    if (spec.source === "system") return at;
    const step = `step ${countText(columns.step[hover])}`;
    if (spec.series.length > 1) return `${at}, ${step}`;
    const value = columns[spec.series[0].name][hover];
    return `${at}, ${step}: ${spec.write(isNumber(value) ? value : null)}`;
  }

  /**
   * @param {Pane} pane @param {Record<string, Float64Array>} columns all in view @param {Scope} scope
   * @param {[number, number]} domain @param {HTMLElement[]} listed rows of the table
   */
  paintPane(pane, columns, scope, domain, listed) {
    const { spec } = pane;
    const theme = themeOf(this.probe);
    const xs = columns.at_s;
    const series = spec.series.map((one) => ({
      ...one,
      colour: one.look === "ink" ? theme.ink : this.source.colours[one.look] ?? theme.ink,
      ys: one.of ? one.of(columns) : columns[one.name],
    }));
    // The picture shows all of the view; what is said of it holds for one set of settings.
    const from = spec.source === "steps" ? scope.from : firstFrom(xs, 0, xs.length, scope.since);
    const inScope = rowsFrom(columns, from);
    const mine = new Map(series.map((one) => [one.name, one.ys.subarray(from)]));
    const seen = {
      columns: inScope,
      reasons: this.source.reasons,
      words: scope.words,
      median: (/** @type {string} */ name) => quantile(mine.get(name) ?? inScope[name] ?? [], 0.5),
      share: (/** @type {string} */ name) => totalShare(inScope[name], inScope.step_ns),
    };
    say(pane.title, spec.title(seen));
    const hover = this.hover === null || xs.length === 0 ? null : nearest(xs, this.hover);
    say(pane.about, hover === null ? spec.about(seen) : this.momentText(spec, columns, hover));
    const measured = series.filter((one) => quantile(one.ys, 0.5) !== null);
    for (const one of series) {
      const usual = spec.stacked ? seen.share(one.name) : seen.median(one.name);
      const now = hover === null ? usual : one.ys[hover];
      const value = /** @type {HTMLElement} */ (pane.values.get(one.name));
      const there = measured.includes(one);
      /** @type {HTMLElement} */ (value.parentElement).hidden = !there;
      /** @type {HTMLElement} */ (value.previousSibling?.previousSibling).style.color = one.colour;
      say(value, spec.write(isNumber(now) ? now : null));
      if (this.details.open) listed.push(numbers(spec, one.label, mine.get(one.name) ?? []));
    }
    pane.legend.hidden = spec.series.length === 1;
    const top = spec.top === "share" ? 1 : topOf(measured, spec.top);
    // A step that takes two seconds is no gap: only more time than any step takes is one.
    const longest = spec.source === "steps" ? quantile(columns.step_ns, 1) ?? 0 : 0;
    const gap = Math.max(GAP_S + (1.5 * longest) / 1e9, (3 * (domain[1] - domain[0])) / 200);
    const drawing = { xs, series: measured, stacked: spec.stacked, top, domain, gap, write: spec.write };
    const { canvas } = pane;
    const box = /** @type {HTMLElement} */ (canvas.parentElement).getBoundingClientRect();
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(box.width * ratio), Math.round(box.height * ratio)];
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    const context = canvas.getContext("2d");
    if (!context || width === 0) return;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const now = this.extent()[1];
    const bands = this.source.bursts.map((one) => ({ from: one.from_s, to: one.to_s ?? now }));
    draw(context, box.width, box.height, drawing, this.source.marks, bands, hover, theme);
    if (this.drag) shade(context, this.drag, domain, box.width, box.height, theme.ink);
  }
}

/**
 * @param {CanvasRenderingContext2D} c @param {[number, number]} range
 * @param {[number, number]} domain @param {number} width @param {number} height @param {string} ink
 */
function shade(c, range, domain, width, height, ink) {
  const frame = frameOf(width, height);
  const x = linear(domain, [frame.left, frame.right]);
  c.globalAlpha = 0.12;
  c.fillStyle = ink;
  const [from, to] = [x.at(Math.min(...range)), x.at(Math.max(...range))];
  c.fillRect(from, frame.top, to - from, frame.bottom - frame.top);
  c.globalAlpha = 1;
}

/** @param {ChartSpec} spec @param {string} label @param {ArrayLike<number>} ys */
function numbers(spec, label, ys) {
  const last = ys.length ? ys[ys.length - 1] : NaN;
  const values = [last, quantile(ys, 0.5), quantile(ys, 0.95)];
  const cells = values.map((value) => make("td", { text: spec.write(isNumber(value) ? value : null) }));
  return make("tr", {}, make("th", { scope: "row", text: `${spec.name}: ${label}` }), ...cells);
}
