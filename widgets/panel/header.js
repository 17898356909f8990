/** The status line and the buttons of the training. */

import { make, say } from "./dom.js";
import { countText, isNumber, shareText, significant } from "../../pages/numbers.js";
import { LINK_WORDS, LOST } from "./link.js";

/**
 * @typedef {{title: string, readonly: boolean, status: string, doing: string, error: string | null,
 *   remedy: string | null, step: number | null, epoch: number | null,
 *   samples_per_s: number | null, overhead: number | null, settings_text: string,
 *   notes: string[], settings: Record<string, any>, pending: Record<string, any> | null, pending_text: string | null,
 *   can: Record<string, boolean>, burst: string | null, watch_changes: boolean,
 *   burst_every_s: number | null, notice: {kind: string, text: string} | null}} Status
 * @typedef {(content: Record<string, unknown>) => Promise<any>} Act
 */

/** @type {Record<string, [string, string]>} */
const WORDS = {
  ready: ["○", "Ready"],
  running: ["▶", "Running"],
  paused: ["❚❚", "Paused"],
  busy: ["◆", "Measuring"],
  stopping: ["■", "Stopping"],
  stopped: ["■", "Stopped"],
  failed: ["✕", "Failed"],
};

export class Header {
  /** @param {Act} act */
  constructor(act) {
    this.act = act;
    this.sign = make("span", { class: "wb-sign", "aria-hidden": "true" });
    this.word = make("strong");
    this.doing = make("span");
    this.live = make("p", { class: "wb-status", role: "status" }, this.sign, this.word, this.doing);
    this.counters = make("dl", { class: "wb-counters" });
    this.alert = make("p", { class: "wb-alert", role: "alert" });
    this.notice = make("p", { class: "wb-notice" });
    this.buttons = this.makeButtons();
    this.stopping = this.makeStop();
    this.bursts = this.makeBursts();
    this.fieldset = make("fieldset", { class: "wb-transport" });
    const row = make("div", { class: "wb-row" }, ...Object.values(this.buttons));
    this.fieldset.append(make("legend", { text: "Training", class: "wb-hidden" }), row);
    this.fieldset.append(this.stopping, this.bursts);
    const top = make("div", { class: "wb-top" }, this.live, this.counters);
    this.element = make("div", { class: "wb-header" }, top, this.fieldset, this.alert, this.notice);
    /** @type {Record<string, HTMLElement>} */
    this.counts = {};
  }

  makeButtons() {
    const press = (/** @type {string} */ kind) => () => this.act({ kind });
    return {
      start: make("button", { class: "wb-main", text: "Start", onclick: press("start") }),
      pause: make("button", { text: "Pause", onclick: press("pause") }),
      step: make("button", { text: "Step once", onclick: press("step") }),
      stop: make("button", { text: "Stop…", "aria-expanded": "false", onclick: () => this.open() }),
      burst: make("button", { text: "Record a burst", onclick: press("burst") }),
    };
  }

  makeStop() {
    const end = (/** @type {boolean} */ keep) => () => {
      this.open(false);
      this.act({ kind: "stop", keep });
    };
    return make(
      "div",
      { class: "wb-row wb-ask", hidden: true, role: "group", "aria-label": "Stop the training" },
      make("span", { text: "Stop, and the weights?" }),
      make("button", { text: "Discard: put all back", onclick: end(false) }),
      make("button", { text: "Keep the trained weights", onclick: end(true) }),
      make("button", { text: "Go on", onclick: () => this.open(false) }),
    );
  }

  makeBursts() {
    this.watch = make("input", { type: "checkbox" });
    this.watch.addEventListener("change", () => this.askBursts());
    this.every = make("input", { type: "number", min: "1", step: "1", placeholder: "off" });
    this.every.addEventListener("change", () => this.askBursts());
    return make(
      "div",
      { class: "wb-row wb-bursts" },
      make("label", {}, this.watch, " burst when the step time changes"),
      make("label", {}, "burst every ", this.every, " minutes"),
    );
  }

  askBursts() {
    const { validity, value } = this.every;
    const minutes = validity.badInput ? "no number of" : value === "" ? null : Number(value);
    this.act({ kind: "bursts", watch_changes: this.watch.checked, burst_every_minutes: minutes });
  }

  open(open = this.stopping.hidden) {
    this.stopping.hidden = !open;
    this.buttons.stop.setAttribute("aria-expanded", String(open));
    if (open) /** @type {HTMLElement} */ (this.stopping.querySelector("button"))?.focus();
    else this.buttons.stop.focus();
  }

  /**
   * @param {Status} status @param {import("./link.js").LinkState} link
   * @param {boolean} lost whether the last click never reached the kernel
   */
  show(status, link, lost) {
    const [sign, word] = WORDS[status.status] ?? ["?", status.status];
    const dead = link !== "live";
    say(this.sign, link === "gone" ? "✕" : dead ? "◆" : sign);
    say(this.word, link === "gone" ? "Disconnected" : dead ? "Kernel busy" : word);
    say(this.doing, dead ? LINK_WORDS[link] : status.doing);
    this.element.dataset.status = dead ? link : status.status;
    const trouble = [status.error, status.remedy].filter(Boolean).join(" ");
    say(this.alert, trouble ? `✕ ${trouble}` : "");
    const notice = lost ? { kind: "error", text: LOST } : status.notice;
    say(this.notice, notice ? `${notice.kind === "error" ? "✕ " : ""}${notice.text}` : "");
    this.notice.dataset.kind = notice?.kind ?? "";
    this.fieldset.disabled = dead;
    this.fieldset.hidden = status.readonly;
    this.showButtons(status);
    this.showCounters(status, link === "gone");
  }

  /** @param {Status} status */
  showButtons(status) {
    const { start, pause, step, stop, burst } = this.buttons;
    const first = status.status === "ready" || status.status === "stopped";
    say(start, first ? "Start" : "Resume");
    start.disabled = !status.can.start;
    pause.disabled = !status.can.pause;
    step.disabled = !status.can.step;
    stop.disabled = !status.can.stop;
    burst.disabled = !status.can.burst || status.burst !== null;
    say(burst, status.burst ?? "Record a burst");
    if (!status.can.stop) this.stopping.hidden = true;
    const root = /** @type {Document | ShadowRoot} */ (this.element.getRootNode());
    this.watch.checked = status.watch_changes;
    const every = status.burst_every_s;
    if (root.activeElement !== this.every) this.every.value = every === null ? "" : String(every / 60);
  }

  /** @param {Status} status @param {boolean} old */
  showCounters(status, old) {
    const rate = status.samples_per_s;
    /** @type {[string, string | null][]} */
    const said = [
      ["step", status.step === null ? null : countText(status.step)],
      ["epoch", status.epoch === null ? null : countText(status.epoch)],
      ["samples/s", isNumber(rate) ? significant(rate) : null],
      ["cost of watching", isNumber(status.overhead) ? shareText(status.overhead) : null],
    ];
    for (const [name, text] of said) {
      if (!this.counts[name]) {
        const value = make("dd");
        this.counts[name] = value;
        this.counters.append(make("div", {}, make("dt", { text: name }), value));
      }
      const value = this.counts[name];
      say(value, text ?? "not measured");
      value.classList.toggle("wb-quiet", text === null || old);
    }
  }
}
