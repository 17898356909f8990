/**
 * The panel: status, switches, live charts, findings, changes and Runs of one training.
 *
 * Everything goes over custom messages: the page asks with a ticket, the kernel answers it, and
 * sends what is new at most four times a second. Nothing here keeps state that the kernel has not
 * said.
 */

import { ChangesView } from "./changes.js";
import { Charts } from "./charts.js";
import { make } from "./dom.js";
import { FindingsView } from "./findings.js";
import { Groups } from "./groups.js";
import { Header } from "./header.js";
import { HistoryView } from "./history.js";
import { Link } from "./link.js";
import { Store } from "./store.js";

/** @param {Store} store @param {import("./link.js").Model} model @param {HTMLElement} el @param {any} host */
function view(store, model, el, host) {
  const link = new Link(model, () => show());
  const act = (/** @type {Record<string, unknown>} */ content) => link.ask(content);
  const header = new Header(act);
  const groups = new Groups(act);
  const opened = make("section", { class: "wb-opened", "aria-label": "Opened", hidden: true });
  const open = (/** @type {any} */ answer) => unfold(opened, answer, model, host);
  const findings = new FindingsView(act, open);
  const changes = new ChangesView();
  const history = new HistoryView(act, open);
  const source = {
    steps: store.steps,
    system: store.system,
    reasons: /** @type {Record<string, string>} */ ({}),
    marks: /** @type {{at: number, label: string}[]} */ ([]),
    bursts: /** @type {{from_s: number, to_s: number | null}[]} */ ([]),
    inForce: 0,
    colours: /** @type {Record<string, string>} */ ({}),
  };
  const charts = new Charts(source);
  const waiting = make("p", { class: "wb-quiet", text: "Waiting for the kernel…" });
  const below = make("div", { class: "wb-below" }, findings.element, changes.element);
  const main = make("div", { class: "wb-main-row" }, charts.element, groups.element, below);
  const root = make("div", { class: "wb-panel", "data-lm-suppress-shortcuts": "true" }, waiting);
  el.append(root);

  function show() {
    const { status, offers, look } = store.sections;
    if (!status || !look) return;
    if (waiting.isConnected) {
      root.replaceChildren(header.element, main, opened, history.element);
      root.setAttribute("role", "region");
      root.setAttribute("aria-label", `Workbench of ${status.title}`);
    }
    // A loop of the user's own is what keeps the kernel busy; nothing of it can be clicked.
    const state = status.readonly && link.state === "busy" ? "live" : link.state;
    const dead = state !== "live";
    const said = store.sections.changes ?? { rows: [], fields: {} };
    source.colours = look.colours;
    source.reasons = look.reasons ?? {};
    source.bursts = store.sections.bursts ?? [];
    source.inForce = said.in_force ?? 0;
    source.marks = said.rows
      .filter((/** @type {any} */ row) => row.at_s !== null)
      .map((/** @type {any} */ row) => ({ at: row.at_s, label: String(row.number) }));
    if (offers) groups.build(offers);
    header.show(status, state, link.lost);
    groups.show(status, said.fields, dead);
    findings.show(store.sections.findings, store.sections.trial ?? null, dead, status.readonly);
    changes.show(said, status.readonly);
    history.show(store.sections.history, dead);
    charts.ask();
  }

  const hear = (/** @type {any} */ content) => {
    link.hear(content);
    if (content.kind === "update") show();
  };
  store.listeners.add(hear);
  act({ kind: "hello" });
  show();
  return () => {
    store.listeners.delete(hear);
    if (store.listeners.size === 0) link.post({ kind: "bye" });
    link.destroy();
    charts.destroy();
  };
}

/**
 * Show what an answer opened: text as text, and another widget as itself.
 * @param {HTMLElement} place @param {any} answer @param {import("./link.js").Model} model
 * @param {any} host
 */
async function unfold(place, answer, model, host) {
  if (!answer || answer.error || !answer.result) return;
  const { title, text, widget, note } = answer.result;
  const close = () => {
    place.hidden = true;
    place.replaceChildren();
  };
  const shut = make("button", { text: "Close", onclick: close });
  place.replaceChildren(make("div", { class: "wb-row" }, make("h3", { text: title }), shut));
  place.hidden = false;
  if (note) place.append(make("p", { class: "wb-quiet", role: "status", text: note }));
  if (text) place.append(make("pre", { tabindex: "0", text }));
  if (widget) {
    const inner = make("div");
    place.append(inner);
    try {
      await embed(inner, widget, model, host);
    } catch (error) {
      const why = /** @type {Error} */ (error)?.message ?? String(error);
      const text = `This front end cannot show it here (${why}). In the next cell: panel.timeline`;
      inner.append(make("p", { text }));
    }
  }
  shut.focus();
  place.scrollIntoView({ block: "nearest" });
}

/**
 * @param {HTMLElement} place @param {string} id @param {import("./link.js").Model} model
 * @param {any} host
 */
async function embed(place, id, model, host) {
  if (host?.getWidget) {
    const widget = await host.getWidget(`anywidget:${id}`);
    await widget.render({ el: place });
    return;
  }
  const child = await model.widget_manager.get_model(id);
  const made = await model.widget_manager.create_view(child, {});
  place.append(made.el);
}

export default () => {
  const store = new Store();
  return {
    /** @param {{model: import("./link.js").Model}} context */
    initialize({ model }) {
      const take = (/** @type {any} */ content, /** @type {any} */ buffers) =>
        store.take(content, buffers ?? []);
      model.on("msg:custom", take);
      return () => model.off("msg:custom", take);
    },
    /** @param {{model: import("./link.js").Model, el: HTMLElement, host?: any}} context */
    render({ model, el, host }) {
      return view(store, model, el, host);
    },
  };
};
