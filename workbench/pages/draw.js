// Draws every figure on the page that is still waiting. The page provides window.Plotly once; when
// it comes late, it says so with the event "workbench:plotly". Without it the tables stay open.
(() => {
  /** @type {any} */
  const page = window;
  const plain = (/** @type {string} */ text) =>
    new DOMParser().parseFromString(text, "text/html").body.textContent ?? "";
  const safe = (/** @type {string} */ text) =>
    text.replace(/[&<>$]/g, (char) => `&#${char.charCodeAt(0)};`);
  const pen = /** @type {CanvasRenderingContext2D} */ (
    document.createElement("canvas").getContext("2d")
  );

  /**
   * Names of rows without their middle where the value at the right edge needs the room.
   * @param {any} layout @param {number} wide @returns {any[]}
   */
  const fitted = (layout, wide) => {
    const font = layout.template?.layout?.font ?? {};
    pen.font = `${font.size ?? 13}px ${font.family ?? "sans-serif"}`;
    const long = (/** @type {string} */ text) => pen.measureText(text).width;
    return (layout.annotations ?? []).map((/** @type {any} */ note, /** @type {number} */ at, /** @type {any[]} */ all) => {
      if (note.name !== "row-name") return note;
      const room = wide - 40 - 1.08 * long(plain(all[at + 1].text)); // values are partly bold
      const chars = [...plain(note.text)];
      if (long(chars.join("")) <= room) return note;
      let kept = chars.length - 1;
      const short = () => {
        const head = Math.ceil((kept * 2) / 3);
        return `${chars.slice(0, head).join("")}…${chars.slice(chars.length - (kept - head)).join("")}`;
      };
      while (kept > 4 && long(short()) > room) kept -= 1;
      return { ...note, text: safe(short()) };
    });
  };

  /**
   * On a narrow page the words for the colours stand below the plot, where beside it they would
   * leave it no room.
   * @param {any} layout @param {number} wide @param {number} entries @returns {any}
   */
  const placed = (layout, wide, entries) => {
    const { legend, height, margin } = layout;
    if (!layout.showlegend || legend?.orientation !== "v") return {};
    if (wide >= 560) return { legend, height, margin };
    const room = 20 * entries + 12;
    const below = { ...legend, orientation: "h", x: 0, yref: "container", y: 0, yanchor: "bottom" };
    return { legend: below, height: height + room, margin: { ...margin, b: margin.b + room } };
  };

  const draw = async (/** @type {any} */ figure) => {
    figure.dataset.wbFigure = "drawing";
    const plot = figure.querySelector(".wb-plot");
    try {
      const { data, layout } = JSON.parse(figure.querySelector("script").textContent);
      plot.style.display = "block";
      const wide = () => plot.clientWidth || 700; // inside something folded there is no width yet
      const named = data.filter((/** @type {any} */ trace) => trace.showlegend !== false);
      const sized = () => {
        const parts = placed(layout, wide(), new Set(named.map((/** @type {any} */ t) => t.name)).size);
        plot.style.height = `${parts.height ?? layout.height}px`;
        return { width: wide(), annotations: fitted(layout, wide()), ...parts };
      };
      await page.Plotly.newPlot(plot, data, { ...layout, ...sized() }, { displayModeBar: false });
      new ResizeObserver(() => {
        if (plot.clientWidth && plot.clientWidth !== plot.layout.width) {
          page.Plotly.relayout(plot, sized());
        }
      }).observe(plot);
      figure.querySelector("details").open = false;
      figure.dataset.wbFigure = "drawn";
    } catch (error) {
      plot.style.height = "auto";
      plot.textContent = `The chart could not be drawn (${/** @type {Error} */ (error).message}); its numbers are below.`;
      figure.dataset.wbFigure = "failed";
    }
  };
  const drawAll = () => document.querySelectorAll('[data-wb-figure="waiting"]').forEach(draw);
  if (page.Plotly) drawAll();
  else window.addEventListener("workbench:plotly", drawAll, { once: true });
})();
