/** Whether the kernel hears this page, said truthfully: what was sent must be taken. */

/**
 * @typedef {{get(name: string): any, on(name: string, callback: Function): void,
 *   off(name: string, callback: Function): void, send(content: object): void,
 *   widget_manager?: any}} Model
 * @typedef {"live" | "busy" | "gone"} LinkState
 */

const PING_MS = 2000;
/** The kernel pauses a training that no page looks at: tell it that one does. */
const HEARTBEAT_MS = 20000;
/** After this long without an answer the page says that it waits. */
const PATIENCE_MS = 700;
const SILENCE_MS = 4000;

export const LINK_WORDS = {
  live: "",
  busy: "The kernel is busy with a cell and takes clicks when that has ended.",
  gone:
    "Disconnected: the kernel does not answer. If it was restarted, run this cell again; Runs are on disk.",
};

export const LOST = "The last click did not reach the kernel: press again.";

/** What is known of a kernel's link. @returns {LinkState} */
export function judge(
  /** @type {{waited: number, silent: number, kernel: string | null}} */ { waited, silent, kernel },
) {
  if (kernel === "dead" || kernel === "disconnected") return "gone";
  if (waited < PATIENCE_MS) return "live";
  // It still sends, so it lives: a cell keeps it from taking what was sent.
  if (silent < PATIENCE_MS || kernel === "busy") return "busy";
  return waited < SILENCE_MS ? "busy" : "gone";
}

export class Link {
  /** @param {Model} model @param {(state: LinkState) => void} changed */
  constructor(model, changed) {
    this.model = model;
    this.changed = changed;
    /** @type {LinkState} */
    this.state = "live";
    /** @type {Map<string, (answer: any) => void>} */
    this.open = new Map();
    /** When each message was sent that the kernel has not taken yet. @type {Map<string, number>} */
    this.untaken = new Map();
    /** Whether the last thing that was asked got lost on its way. */
    this.lost = false;
    this.heard = performance.now();
    this.pinged = this.heard;
    this.timer = setInterval(() => this.look(), 250);
  }

  destroy() {
    clearInterval(this.timer);
  }

  /** Send a message; resolves with the kernel's answer. @param {Record<string, unknown>} content */
  ask(content) {
    const ticket = Math.random().toString(36).slice(2);
    this.lost = false;
    this.untaken.set(ticket, performance.now());
    const answered = new Promise((settle) => this.open.set(ticket, settle));
    this.post({ ...content, ticket });
    return answered;
  }

  ping() {
    this.pinged = performance.now();
    const first = !this.untaken.has("ping");
    if (first) this.untaken.set("ping", this.pinged);
    this.post({ kind: "ping", ticket: "ping" });
  }

  /** @param {object} content */
  post(content) {
    try {
      this.model.send(content);
    } catch {
      // A model without a comm cannot send: the missing answer says so.
    }
  }

  /** A message arrived. @param {any} content */
  hear(content) {
    this.heard = performance.now();
    if (content.kind === "taken") this.untaken.delete(content.ticket);
    if (content.kind === "answer") {
      if (content.ticket === "ping") this.give(this.untaken.get("ping") ?? 0);
      this.settle(content.ticket, content);
    }
    this.look();
  }

  /** The kernel takes messages in their order: what is older than an answered ping is lost. */
  give(/** @type {number} */ pinged) {
    for (const [ticket, sent] of [...this.untaken]) {
      if (ticket === "ping" || sent >= pinged) continue;
      this.lost = true;
      this.settle(ticket, { error: LOST });
    }
    if (this.lost) this.changed(this.state);
  }

  settle(/** @type {string} */ ticket, /** @type {any} */ answer) {
    this.untaken.delete(ticket);
    this.open.get(ticket)?.(answer);
    this.open.delete(ticket);
  }

  look() {
    const now = performance.now();
    const kernel = this.kernel();
    // What it sends shows that it lives, not that it listens: ask, when a cell may keep it.
    const asks = now - this.heard > PING_MS || kernel === "busy" || this.state !== "live";
    if (now - this.pinged > (asks ? PING_MS : HEARTBEAT_MS)) this.ping();
    const waited = now - Math.min(...this.untaken.values(), now);
    const state = judge({ waited, silent: now - this.heard, kernel });
    if (state === this.state) return;
    this.state = state;
    this.changed(state);
  }

  /** What Jupyter knows of the kernel; null elsewhere. @returns {string | null} */
  kernel() {
    const kernel = this.model.widget_manager?.kernel;
    if (!kernel) return null;
    if (kernel.isDisposed || kernel.status === "dead") return "dead";
    if (kernel.connectionStatus && kernel.connectionStatus !== "connected") return "disconnected";
    return kernel.status ?? null;
  }
}
