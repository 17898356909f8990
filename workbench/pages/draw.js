// Draws every figure on the page that is still waiting. The page provides window.Plotly once; when
// it comes late, it says so with the event "workbench:plotly". Without it the tables stay open.
(() => {
  const plain = (text) => new DOMParser().parseFromString(text, "text/html").body.textContent;
  const safe = (text) =>
    text.replace(/[&<>$]/g, (char) => `&#${char.charCodeAt(0)};`);
  const pen = document.createElement("canvas").getContext("2d");

  /** Names of rows without their middle where the value at the right edge needs the room. */
  const fitted = (layout, wide) => {
    const font = layout.template?.layout?.font ?? {};
    pen.font = `${font.size ?? 13}px ${font.family ?? "sans-serif"}`;
    const long = (text) => pen.measureText(text).width;
    return (layout.annotations ?? []).map((note, at, all) => {
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

  /** @param {HTMLElement} figure */
  const draw = async (figure) => {
    figure.dataset.wbFigure = "drawing";
    const plot = figure.querySelector(".wb-plot");
    try {
      const { data, layout } = JSON.parse(figure.querySelector("script").textContent);
      plot.style.cssText = `display: block; height: ${layout.height}px`;
      const wide = () => plot.clientWidth || 700; // inside something folded there is no width yet
      const sized = () => ({ width: wide(), annotations: fitted(layout, wide()) });
      await window.Plotly.newPlot(plot, data, { ...layout, ...sized() }, { displayModeBar: false });
      new ResizeObserver(() => {
        if (plot.clientWidth && plot.clientWidth !== plot.layout.width) {
          window.Plotly.relayout(plot, sized());
        }
      }).observe(plot);
      figure.querySelector("details").open = false;
      figure.dataset.wbFigure = "drawn";
    } catch (error) {
      plot.style.height = "auto";
      plot.textContent = `The chart could not be drawn (${error.message}); its numbers are below.`;
      figure.dataset.wbFigure = "failed";
    }
  };
  const drawAll = () => document.querySelectorAll('[data-wb-figure="waiting"]').forEach(draw);
  if (window.Plotly) drawAll();
  else window.addEventListener("workbench:plotly", drawAll, { once: true });
})();
