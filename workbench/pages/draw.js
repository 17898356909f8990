// Draws every figure on the page that is still waiting. The page provides window.Plotly once; when
// it comes late, it says so with the event "workbench:plotly". Without it the tables stay open.
(() => {
  /** @param {HTMLElement} figure */
  const draw = async (figure) => {
    figure.dataset.wbFigure = "drawing";
    const plot = figure.querySelector(".wb-plot");
    try {
      const { data, layout } = JSON.parse(figure.querySelector("script").textContent);
      plot.style.cssText = `display: block; height: ${layout.height}px`;
      const wide = () => plot.clientWidth || 700; // inside something folded there is no width yet
      await window.Plotly.newPlot(plot, data, { ...layout, width: wide() }, { displayModeBar: false });
      new ResizeObserver(() => {
        if (plot.clientWidth && plot.clientWidth !== plot.layout.width) {
          window.Plotly.relayout(plot, { width: plot.clientWidth });
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
