// Workers that the master eliminated, and when: a grid of workers per algorithm and case.

const ALL_WORKERS = 60;  // of more workers, only those are listed that are Byzantine or were eliminated

function showElimination() {
  const found = cases.flatMap((setting) => alike(axes.algorithm
    .map((algorithm) => ({ algorithms: [algorithm], setting, runs: finished(algorithm, setting) }))
    .filter(({ runs }) => runs.some((run) => Object.keys(run.eliminated).length))));
  const about = found.length
    ? "Workers that the master eliminated, with the iteration" +
      `${axes.seed.length > 1 ? " (first to last over the seeds, and in how many of them if not in all)" : ""}.` +
      " Byzantine workers have a bar at the left. Where none was eliminated, nothing is listed."
    : "The master eliminated no worker in any run.";
  byId("eliminated").append(make("p", { class: "caption" }, about), ...found.map(workerGrid));
}

const finished = (algorithm, setting) => runsOf(algorithm, setting).filter((run) => run.status === "done");

/** The entries of one case, those with the same workers at the same iterations as one. */
function alike(entries) {
  const found = new Map();
  for (const entry of entries) {
    const key = JSON.stringify(entry.runs.map((run) => [run.seed, run.byzantine, run.eliminated]));
    if (found.has(key)) found.get(key).algorithms.push(...entry.algorithms);
    else found.set(key, entry);
  }
  return [...found.values()];
}

function workerGrid({ algorithms, setting, runs }) {
  const total = (count) => runs.reduce((sum, run) => sum + count(run), 0);
  const isByzantine = (run, worker) => run.byzantine.includes(worker);
  const gone = (run) => Object.keys(run.eliminated).map(Number);
  const byzantine = total((run) => run.byzantine.length);
  const hit = total((run) => gone(run).filter((worker) => isByzantine(run, worker)).length);
  const missed = total((run) => gone(run).filter((worker) => !isByzantine(run, worker)).length);
  const regular = runs.length * record.n_workers - byzantine;
  const text = `${algorithms.length > 1 ? "each " : ""}eliminated ${hit} of ${byzantine} Byzantine and ${missed} of ${regular} regular workers` +
    (runs.length > 1 ? ` over ${runs.length} seeds` : "");
  const workers = Array.from({ length: record.n_workers }, (_, worker) => worker).filter((worker) =>
    record.n_workers <= ALL_WORKERS || runs.some((run) => isByzantine(run, worker) || Object.hasOwn(run.eliminated, worker)));
  const title = [setting.attack, inWords(setting)].filter(Boolean).join(", ");
  return make("figure", { class: "workers" }, make("figcaption", {}, make("strong", {}, title), `: ${algorithms.join(", ")} ${text}`),
    make("ol", {}, ...workers.map((worker) => workerCell(worker, runs))));
}

function workerCell(worker, runs) {
  const byzantine = runs.some((run) => run.byzantine.includes(worker));
  const when = runs.filter((run) => Object.hasOwn(run.eliminated, worker)).map((run) => run.eliminated[worker]);
  const kind = byzantine ? "Byzantine" : "regular";
  const classes = [byzantine ? "byzantine" : "", when.length ? "gone" : ""].join(" ").trim();
  const span = [...new Set([Math.min(...when), Math.max(...when)])].join("\u2013");
  const part = when.length < runs.length ? `${when.length}/${runs.length}` : "";
  const title = `worker ${worker}, ${kind}: ${when.length ? `eliminated at iteration ${when.join(", ")}` : "not eliminated"}`;
  return make("li", { class: classes, title }, make("b", {}, String(worker)),
    make("span", {}, when.length ? [span, part].filter(Boolean).join(" \u00b7 ") : "\u00a0"));
}
