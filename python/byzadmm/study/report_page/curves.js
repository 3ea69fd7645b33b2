// The curves: a panel per attack, with choices of metric, setting, scale and algorithms.

const shown = new Set(axes.algorithm);
const choice = { metric: record.metric, setting: settings[0], range: null };
const RANGES = ["all values", "later values", "logarithmic"];  // of the vertical axis
const LATER = 0.2;  // of a run: where later values begin
const MANY = 8;  // algorithms whose names are aligned in columns
const WIDE_RANGE = 100;  // of positive values: drawn on a logarithmic axis unless the reader says otherwise

function select(id, title, options, change) {
  const list = make("select", { id }, ...options.map((text, place) => make("option", { value: place }, text)));
  list.addEventListener("change", () => change(Number(list.value)));
  return make("label", {}, `${title} `, list);
}

function showControls() {
  const controls = byId("controls");
  controls.addEventListener("submit", (event) => event.preventDefault());
  const drawn = record.metrics.filter((metric) =>
    record.runs.some((run) => run.curves[metric]?.some((value) => value !== null)));
  const metrics = drawn.length ? drawn : [record.metric];
  if (!metrics.includes(choice.metric)) choice.metric = metrics[0];
  const metric = select("metric", "metric", metrics.map(words), (place) => {
    choice.metric = metrics[place];
    choice.range = null;
    showCurves();
  });
  metric.querySelector("select").value = metrics.indexOf(choice.metric);
  controls.append(metric);
  if (settings.length > 1) {
    controls.append(select("setting", "setting", settings.map((setting) => inWords(setting)), (place) => {
      choice.setting = settings[place];
      showCurves();
    }));
  }
  controls.append(select("range", "vertical axis", RANGES, (place) => {
    choice.range = RANGES[place];
    showCurves();
  }));
}

function showLegend() {
  const legend = byId("legend");
  const boxes = axes.algorithm.map((algorithm) => {
    const box = make("input", { type: "checkbox", "data-algorithm": algorithm });
    box.checked = true;
    box.addEventListener("change", () => {
      if (box.checked) shown.add(algorithm);
      else shown.delete(algorithm);
      showCurves();
    });
    legend.append(make("label", {}, box, swatch(algorithm), make("span", {}, algorithm)));
    return box;
  });
  for (const [text, on] of [["all", true], ["none", false]]) {
    const button = make("button", { type: "button" }, text);
    button.addEventListener("click", () => {
      for (const box of boxes) box.checked = on;
      shown.clear();
      if (on) axes.algorithm.forEach((algorithm) => shown.add(algorithm));
      showCurves();
    });
    legend.append(button);
  }
  legend.classList.toggle("many", boxes.length > MANY);
}

function showCurves() {
  const { metric, setting } = choice;
  const panels = axes.attack.map((attack) => ({
    attack,
    lines: axes.algorithm.filter((algorithm) => shown.has(algorithm))
      .map((algorithm) => ({ algorithm, points: curveOf(algorithm, { attack, ...setting }, metric) }))
      .filter((line) => line.points.length),
  }));
  const lines = panels.flatMap((panel) => panel.lines);
  const last = lines.flatMap((line) => line.points).reduce((most, point) => Math.max(most, point.k), 0) || 1;
  const kept = lines.filter((line) => !diverges(line.points));
  const leaving = kept.length > 0 && kept.length < lines.length;
  const y = verticalScale((leaving ? kept : lines).flatMap((line) => line.points)
    .filter((point) => point.mean !== null), last);
  const available = byId("panels").clientWidth || 700;
  const most = Math.max(1, Math.min(Math.floor(available / 320), 3));
  const count = Math.ceil(axes.attack.length / Math.ceil(axes.attack.length / most));
  const width = Math.round(Math.min(640, (available - 24 * (count - 1)) / count));
  const height = Math.round(Math.min(320, Math.max(210, width * 0.62)));
  const x = { ticks: linearTicks(0, last, width > 330 ? 5 : 4), at: (k) => k / last };
  const look = { x, y: y.scale, width, height, metric, positive: y.logarithmic };
  byId("panels").style.setProperty("--columns", count);
  byId("panels").replaceChildren(...panels.map(({ attack, lines }) => makePanel(attack, lines, look)));
  byId("readout").hidden = true;
  const seeds = axes.seed.length > 1
    ? `Lines are means over ${axes.seed.length} seeds, bands reach from the least to the greatest value.` : "One seed.";
  const pointer = " Values are shown at the pointer, or with the arrow keys in a panel.";
  byId("curves-caption").replaceChildren(`${capital(words(metric))} by ${byTime ? xName : "iteration"}, a panel per attack; ` +
    `${inWords(setting, true).replace(/\.$/, "")}. ${seeds} A line ends or has a gap where a run has no finite value.` +
    (leaving ? " One that ends a thousand times higher than it began leaves the picture." : ""),
    make("span", { class: "screen" }, pointer));
}

/** The scale that all panels share, as the reader chose it or as the values ask for it. */
function verticalScale(points, last) {
  const all = extremes(points);
  const positive = extremes(points.filter((point) => point.mean > 0)
    .map((point) => ({ low: point.low > 0 ? point.low : point.mean, high: point.high })));
  const share = all !== null && isShare(all) && choice.metric.endsWith("accuracy");
  const wide = !share && positive !== null && all[0] >= 0 && positive[1] / positive[0] > WIDE_RANGE;
  const range = choice.range ?? (wide ? "logarithmic" : "all values");
  byId("range").value = RANGES.indexOf(range);
  if (range === "logarithmic" && positive !== null) return { scale: scaleOf(positive, true), logarithmic: true };
  if (range === "all values" && share) return { scale: scaleOf([0, 1], false, true), logarithmic: false };
  const later = range === "later values" ? extremes(points.filter((point) => point.k >= LATER * last)) : null;
  return { scale: scaleOf(later ?? all ?? [0, 1], false), logarithmic: false };
}

/** The least and the greatest value, or null if there is none. */
function extremes(points) {
  const start = [Infinity, -Infinity];
  const found = points.reduce(([low, high], point) => [Math.min(low, point.low), Math.max(high, point.high)], start);
  return points.length ? found : null;
}

const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);
