// What was run: one line of summary, shared settings, settings of the algorithms.

function asText(value) {
  if (value === null) return "none";
  if (value === true) return "yes";
  if (value === false) return "no";
  if (Array.isArray(value)) return value.map(asText).join(", ");
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function duration(seconds) {
  if (seconds === null) return "unknown time";
  if (seconds < 120) return `${inSeconds(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return `${number(seconds / 3600, 1)} h`;
}

const inSeconds = (seconds) => (seconds < 100 ? seconds.toPrecision(3) : seconds.toFixed(0));

function showSettings() {
  const count = (status) => record.runs.filter((run) => run.status === status).length;
  const states = ["failed", "illegal", "missing"].filter(count).map((status) => `${count(status)} ${status}`);
  byId("summary").append([
    `byzadmm ${record.version}`,
    record.when,
    plural(record.runs.length, "run") + (states.length ? ` (${states.join(", ")})` : ""),
    duration(record.seconds),
  ].filter(Boolean).join(" \u00b7 "));
  const shown = [
    ...Object.entries(record.settings),
    ["workers", record.n_workers],
    ["Byzantine workers", axes.n_byzantine],
    [axes.partition.length > 1 ? "partitions" : "partition", axes.partition],
    [axes.attack.length > 1 ? "attacks" : "attack", axes.attack],
    [axes.seed.length > 1 ? "seeds" : "seed", axes.seed],
  ];
  for (const [name, value] of shown) {
    byId("shared").append(make("div", {}, make("dt", {}, words(name)), make("dd", {}, asText(value))));
  }
  for (const label of axes.algorithm) {
    const about = make("code", {}, asText(record.algorithms[label].settings));
    byId("algorithms").append(make("div", {}, make("dt", {}, swatch(label), label), make("dd", {}, about)));
  }
}

/** A short piece of an algorithm's line. */
function swatch(algorithm) {
  const line = paintLine(draw("line", { x1: 1, y1: 5, x2: 29, y2: 5 }), algorithm);
  return draw("svg", { class: "swatch", viewBox: "0 0 30 10", width: 30, height: 10, "aria-hidden": "true" }, line);
}
