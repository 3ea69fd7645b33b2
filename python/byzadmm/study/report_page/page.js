// The page: everything is shown, follows the window, prints, and is dark or light.

const dark = window.matchMedia("(prefers-color-scheme: dark)");
let scheme = null;  // the reader's choice; null: the system's

function showScheme() {
  const now = scheme ?? (dark.matches ? "dark" : "light");
  const other = now === "dark" ? "light" : "dark";
  document.documentElement.style.colorScheme = scheme ?? "";
  byId("theme").textContent = capital(other);
  byId("theme").setAttribute("aria-label", `Switch to ${other} colors`);
}

byId("theme").addEventListener("click", () => {
  scheme = (scheme ?? (dark.matches ? "dark" : "light")) === "dark" ? "light" : "dark";
  showScheme();
});
dark.addEventListener("change", showScheme);

// Tables are printed in parts that fit the paper, and disclosures open.
let closed = [];
window.addEventListener("beforeprint", () => {
  showTable(true);
  closed = [...document.querySelectorAll("details:not([open])")];
  for (const details of closed) details.open = true;
});
window.addEventListener("afterprint", () => {
  showTable();
  for (const details of closed) details.open = false;
});

document.addEventListener("scroll", () => {
  byId("readout").hidden = true;
}, { passive: true });

let drawnWidth = 0;
new ResizeObserver(() => {
  const width = byId("panels").clientWidth;
  if (width === drawnWidth) return;
  drawnWidth = width;
  requestAnimationFrame(showCurves);
}).observe(byId("panels"));

showScheme();
showSettings();
showTable();
showControls();
showLegend();
drawnWidth = byId("panels").clientWidth;
showCurves();
showMaps();
showElimination();
