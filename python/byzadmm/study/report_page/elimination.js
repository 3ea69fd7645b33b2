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

const gone = (run) => Object.keys(run.eliminated).map(Number);
const isByzantine = (run, worker) => run.byzantine.includes(worker);

function workerGrid({ algorithms, setting, runs }) {
  const total = (count) => runs.reduce((sum, run) => sum + count(run), 0);
  const byzantine = total((run) => run.byzantine.length);
  const caught = total((run) => gone(run).filter((worker) => isByzantine(run, worker)).length);
  const others = total((run) => gone(run).length) - caught;
  const regular = runs.length * record.n_workers - byzantine;
  const text = `${algorithms.join(", ")} ${algorithms.length > 1 ? "each " : ""}eliminated ` +
    `${caught} of ${byzantine} Byzantine and ${others} of ${regular} regular workers` +
    (runs.length > 1 ? ` over ${runs.length} seeds` : "");
  const notable = (worker) => runs.some((run) => isByzantine(run, worker) || gone(run).includes(worker));
  const workers = Array.from({ length: record.n_workers }, (_, worker) => worker)
    .filter((worker) => record.n_workers <= ALL_WORKERS || notable(worker));
  const title = [setting.attack, inWords(setting)].filter(Boolean).join(", ");
  return make("figure", { class: "workers" }, make("figcaption", {}, make("strong", {}, title), `: ${text}`),
    make("ol", {}, ...workers.map((worker) => workerCell(worker, runs))));
}

function workerCell(worker, runs) {
  const byzantine = runs.some((run) => isByzantine(run, worker));
  const when = runs.filter((run) => gone(run).includes(worker)).map((run) => run.eliminated[worker]);
  const span = [...new Set([Math.min(...when), Math.max(...when)])].join("\u2013");
  const part = when.length < runs.length ? `${when.length}/${runs.length}` : "";
  const fate = when.length ? `eliminated at iteration ${when.join(", ")}` : "not eliminated";
  return make("li", {
    class: [byzantine && "byzantine", when.length && "gone"].filter(Boolean).join(" "),
    title: `worker ${worker}, ${byzantine ? "Byzantine" : "regular"}: ${fate}`,
  }, make("b", {}, String(worker)),
    make("span", {}, when.length ? [span, part].filter(Boolean).join(" \u00b7 ") : "\u00a0"));
}
