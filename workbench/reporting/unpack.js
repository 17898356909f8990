// Unpacks the one copy of plotly.js that the page carries (gzip, base64), runs it, and tells the
// waiting figures. A browser that cannot do it leaves every table open.
(async () => {
  const packed = document.getElementById("wb-plotly");
  const bytes = Uint8Array.from(atob(packed.textContent.trim()), (char) => char.charCodeAt(0));
  packed.remove();
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const library = document.createElement("script");
  library.textContent = await new Response(stream).text();
  document.head.append(library);
  window.dispatchEvent(new Event("workbench:plotly"));
})().catch((error) => {
  const note = document.createElement("p");
  note.className = "wb-quiet";
  note.textContent = `The charts cannot be drawn in this browser (${error.message}); every number is below as a table.`;
  document.querySelector("main").prepend(note);
});
