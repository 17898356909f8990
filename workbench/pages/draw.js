// Draws every figure on the page that is still waiting. The page provides window.Plotly once; when
// it comes late, it says so with the event "workbench:plotly". Without it the tables stay open.
(() => {
  /** @param {HTMLElement} figure */
  const draw = async (figure) => {
    figure.dataset.wbFigure = "drawing";
    const plot = figure.querySelector(".wb-plot");
    try {
      const { data, layout } = JSON.parse(figure.querySelector("script").textContent);
      plot.style.height = `${layout.height}px`;
      await window.Plotly.newPlot(plot, data, layout, { displayModeBar: false });
      new ResizeObserver(() => plot.clientWidth && window.Plotly.Plots.resize(plot)).observe(plot);
      figure.querySelector("details").open = false;
      figure.dataset.wbFigure = "drawn";
    } catch (error) {
      plot.style.height = "";
      plot.textContent = `The chart could not be drawn (${error.message}); its numbers are below.`;
      figure.dataset.wbFigure = "failed";
    }
  };
  const drawAll = () => document.querySelectorAll('[data-wb-figure="waiting"]').forEach(draw);
  if (window.Plotly) drawAll();
  else window.addEventListener("workbench:plotly", drawAll, { once: true });
})();
