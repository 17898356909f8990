/**
 * The timeline as an anywidget. The scene comes as one trait; all else are custom messages, so that
 * a busy kernel or an async cell never leaves the view dead: it then answers from its own columns.
 *
 * @typedef {{get(name: string): any, on(name: string, callback: (...args: any[]) => void): void,
 *   off(name: string, callback: (...args: any[]) => void): void, send(content: object): void}} Model
 */

import { bytesOf } from "../buffers.js";
import { chooseRange, go } from "./choosing.js";
import { decode, gunzip } from "./decode.js";
import { element } from "./elements.js";
import { mount } from "./view.js";

/** @param {Model} model @returns {import("./view.js").Kernel & {stop: () => void}} */
function kernelOf(model) {
  /** @type {Map<string, (answer: any) => void>} */
  const waiting = new Map();
  const receive = (/** @type {any} */ content) => {
    const take = waiting.get(content?.ticket);
    if (!take) return;
    waiting.delete(content.ticket);
    take(content.error ? null : content.answer);
  };
  model.on("msg:custom", receive);
  const ask = (/** @type {object} */ question) => {
    const ticket = Math.random().toString(36).slice(2);
    return new Promise((resolve) => {
      waiting.set(ticket, resolve);
      model.send({ ...question, ticket });
    });
  };
  return {
    select: (selection) => model.send({ kind: "select", selection }),
    summary: (range) => ask({ kind: "summary", ...range }),
    details: (event) => ask({ kind: "details", event }),
    stop: () => model.off("msg:custom", receive),
  };
}

/** @param {{model: Model, el: HTMLElement}} context */
async function render({ model, el }) {
  const wait = element("p", "wbt-quiet", "Unpacking the timeline…");
  el.append(wait);
  const kernel = kernelOf(model);
  try {
    const scene = decode(await gunzip(bytesOf(model.get("_scene"))));
    const view = mount(el, scene, kernel);
    wait.remove();
    const goTo = () => {
      const place = model.get("_place");
      if (!place || !(place.to > place.from)) return;
      const event = place.event >= 0 && place.event < scene.length ? place.event : -1;
      view.show(place.from, place.to, event < 0 ? 0.1 : 0);
      if (event < 0) chooseRange(view, { from: place.from, to: place.to });
      else go(view, event);
    };
    model.on("change:_place", goTo);
    goTo();
    return () => {
      model.off("change:_place", goTo);
      kernel.stop();
      view.remove();
    };
  } catch (error) {
    wait.textContent = `The timeline cannot be drawn here (${/** @type {Error} */ (error).message}).`;
    return kernel.stop;
  }
}

export default { render };
