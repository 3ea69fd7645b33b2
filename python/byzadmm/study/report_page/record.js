// The record, cells of it, means over seeds, elements and numbers as text.

const record = JSON.parse(document.getElementById("record").textContent);
const axes = record.axes;
const SVG = document.getElementById("drawing").namespaceURI;

const byTime = record.x === "time";  // simulated time
const xName = byTime ? "simulated time" : "iterations";
const atPlace = (k) => (byTime ? `time ${axisNumber(k)}` : `iteration ${k}`);

const byId = (id) => document.getElementById(id);
const words = (name) => String(name).replaceAll("_", " ");
const plural = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;

/** An element with attributes and children; strings become text, never markup. */
function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

const keyOf = (run) => JSON.stringify([run.algorithm, run.attack, run.n_byzantine, run.partition]);
const grouped = new Map();
for (const run of record.runs) {
  run.places = record.grids[run.places];
  if (!grouped.has(keyOf(run))) grouped.set(keyOf(run), []);
  grouped.get(keyOf(run)).push(run);
}

/** Every attack with every number of Byzantine workers and partition, in the order of the axes. */
const settings = axes.n_byzantine.flatMap((n_byzantine) =>
  axes.partition.map((partition) => ({ n_byzantine, partition })));
const cases = axes.attack.flatMap((attack) => settings.map((setting) => ({ attack, ...setting })));

const runsOf = (algorithm, setting) => grouped.get(keyOf({ algorithm, ...setting })) ?? [];

/** A setting in words: what differs between settings, or all of it. */
function inWords(setting, all = false) {
  const parts = [];
  if (all || axes.n_byzantine.length > 1) {
    const count = setting.n_byzantine;
    parts.push(all ? `${count} of ${record.n_workers} workers Byzantine` : `${count} Byzantine`);
  }
  if (all || axes.partition.length > 1) parts.push(String(setting.partition));
  return parts.join(", ");
}

/** Mean, least and greatest of numbers; null if one of them is missing. */
function spread(values) {
  if (!values.length || values.some((value) => value === null || value === undefined)) return null;
  return {
    mean: values.reduce((sum, value) => sum + value / values.length, 0),
    low: Math.min(...values),
    high: Math.max(...values),
  };
}

/** The final value of an algorithm in a case over its seeds; `state` says why there is none, `reasons` why not all. */
const finals = new Map();
function finalOf(algorithm, setting) {
  const key = keyOf({ algorithm, ...setting });
  if (!finals.has(key)) finals.set(key, computeFinal(runsOf(algorithm, setting)));
  return finals.get(key);
}

function computeFinal(runs) {
  const done = runs.filter((run) => run.status === "done");
  const others = runs.filter((run) => run.status !== "done");
  const values = spread(done.map((run) => run.final));
  const reasons = new Set(others.map((run) => [run.status, run.error].filter(Boolean).join(": ")));
  const diverged = done.filter((run) => run.final === null);
  if (diverged.length) reasons.add(`not finite: ${seedsOf(diverged)}`);
  const state = values ? "done" : done.length ? "not finite" : others[0]?.status ?? "missing";
  return { state, values, done: done.length, seeds: Math.max(runs.length, axes.seed.length), reasons: [...reasons] };
}

const seedsOf = (runs) => `seed${runs.length === 1 ? "" : "s"} ${runs.map((run) => run.seed).join(", ")}`;

/** Mean and range over seeds at every place that all finished runs reach; null where one of them is not finite. */
const curves = new Map();
function curveOf(algorithm, setting, metric) {
  const key = JSON.stringify([keyOf({ algorithm, ...setting }), metric]);
  if (!curves.has(key)) curves.set(key, computeCurve(runsOf(algorithm, setting), metric));
  return curves.get(key);
}

function computeCurve(runs, metric) {
  const done = runs.filter((run) => run.status === "done" && Object.hasOwn(run.curves, metric));
  const every = [...new Set(done.flatMap((run) => run.places))].sort((a, b) => a - b);
  const shared = byTime  // where seeds are evaluated at other times, each has the value of its last evaluation
    ? every.filter((k) => done.every((run) => k <= run.places.at(-1)))
    : every.filter((k) => done.every((run) => run.places.includes(k)));
  return shared.map((k) => {
    const values = done.map((run) => run.curves[metric][run.places.findLastIndex((place) => place <= k)]);
    return { k, ...(spread(values) ?? { mean: null, low: null, high: null }) };
  });
}

/** Whether a curve ends a thousand times higher than it began: beside it, nothing of the others would be seen. */
function diverges(points) {
  const sizes = points.filter((point) => point.mean !== null).map((point) => Math.abs(point.mean));
  return sizes.length > 0 && sizes.at(-1) > 1000 * Math.max(1, sizes.find((size) => size > 0) ?? 1);
}

/** A number in few characters, with four significant digits or so many decimals. */
function number(value, decimals = null) {
  if (value === null || value === undefined) return "not finite";
  const size = Math.abs(value);
  let text;
  if (size !== 0 && (size >= 1e5 || size < 1e-3)) text = value.toExponential(2).replace("e+", "e");
  else if (decimals === null) text = size >= 1000 || size === 0 ? value.toFixed(0) : value.toPrecision(4);
  else text = value.toFixed(decimals);
  return text.replaceAll("-", "\u2212");
}

const isShare = (values) => values.every((value) => value >= 0 && value <= 1);
const finalValues = axes.algorithm
  .flatMap((algorithm) => cases.map((setting) => finalOf(algorithm, setting).values))
  .filter((values) => values !== null);
const finalsAreShares = isShare(finalValues.flatMap((values) => [values.low, values.high]));
const finalNumber = (value, decimals = 3) => number(value, finalsAreShares ? decimals : null);
