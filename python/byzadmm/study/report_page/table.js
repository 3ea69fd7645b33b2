// The table of final values: a row per algorithm, sorted by any column.

const PRINTED_COLUMNS = 7;  // at most
const SHORT = 16;  // rows of a table that is printed on one page
const order = { column: 0, descending: false };
const notes = [];

/** Columns: how they are headed, what a cell shows, and the number that a row is sorted by (null: last). */
const columns = [
  { head: "algorithm", cell: algorithmCell, key: (algorithm) => axes.algorithm.indexOf(algorithm) },
  ...cases.map((setting) => ({
    setting,
    head: inWords(setting) || setting.attack,
    cell: (algorithm) => finalCell(finalOf(algorithm, setting)),
    key: (algorithm) => finalOf(algorithm, setting).values?.mean ?? null,
    descends: record.higher_is_better,
  })),
  {
    head: "seconds per run",
    cell: (algorithm) => make("td", {}, secondsOf(algorithm) === null ? "\u2013" : inSeconds(secondsOf(algorithm))),
    key: secondsOf,
  },
];

function secondsOf(algorithm) {
  const done = record.runs.filter((run) => run.algorithm === algorithm && run.status === "done");
  return spread(done.map((run) => run.seconds))?.mean ?? null;
}

function algorithmCell(algorithm) {
  return make("th", { scope: "row" }, make("span", {}, algorithm));
}

function finalCell(final) {
  const marks = final.reasons.map((reason) => {
    if (!notes.includes(reason)) notes.push(reason);
    const place = notes.indexOf(reason) + 1;
    return make("sup", {}, make("a", { href: `#note-${place}`, title: reason }, String(place)));
  });
  if (final.values === null) {
    return make("td", { class: "absent", title: final.reasons.join("; ") }, final.state, ...marks);
  }
  const { mean, low, high } = final.values;
  const range = final.done > 1 ? make("small", {}, `${finalNumber(low)}\u2013${finalNumber(high)}`) : null;
  const partly = final.done < final.seeds ? make("small", {}, `${final.done} of ${plural(final.seeds, "seed")}`) : null;
  return make("td", {}, finalNumber(mean), ...marks, range, partly);
}

function sortedAlgorithms() {
  const { key } = columns[order.column];
  const sign = order.descending ? -1 : 1;
  const compare = (a, b) => (key(a) === null) - (key(b) === null) || sign * (key(a) - key(b));
  return [...axes.algorithm].sort(compare);
}

function showTable(printed = false) {
  const focused = document.activeElement?.dataset.column;
  const middle = columns.slice(1);
  const together = Math.min(settings.length, PRINTED_COLUMNS);  // columns of one attack
  const perTable = printed ? PRINTED_COLUMNS - PRINTED_COLUMNS % together : middle.length;
  const tables = [];
  for (let start = 0; start < middle.length; start += perTable) {
    tables.push(oneTable([columns[0], ...middle.slice(start, start + perTable)], printed, start === 0));
  }
  byId("tables").replaceChildren(...tables);
  byId("notes").replaceChildren(...notes.map((note, place) => make("li", { id: `note-${place + 1}` }, note)));
  if (focused !== undefined) byId("tables").querySelector(`[data-column="${focused}"]`)?.focus();
}

function oneTable(shown, printed, first) {
  const metric = words(record.metric);
  const seeds = axes.seed.length > 1
    ? `mean over ${axes.seed.length} seeds, and below it the least and the greatest` : "one seed";
  const caption = `Final ${metric}: mean over the evaluations from four fifths of a run on; ${seeds}.` +
    ` ${record.higher_is_better ? "Higher" : "Lower"} is better.`;
  const body = sortedAlgorithms().map((algorithm) => make("tr", {}, ...shown.map((column) => column.cell(algorithm))));
  const table = make("table", { class: body.length <= SHORT ? "finals short" : "finals" },
    make("caption", {}, make("span", {}, first ? caption : "(continued)")),
    make("thead", {}, ...headRows(shown, printed)), make("tbody", {}, ...body));
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Final ${metric}` }, table);
}

/** One row of headings, or two where an attack has several columns. */
function headRows(shown, printed) {
  if (settings.length === 1) return [make("tr", {}, ...shown.map((column) => headCell(column, printed)))];
  const upper = [];
  for (const column of shown) {
    const last = upper.at(-1);
    if (column.setting && last?.attack === column.setting.attack) last.count += 1;
    else upper.push({ attack: column.setting?.attack, column, count: 1 });
  }
  const heads = upper.map(({ attack, column, count }) => attack === undefined
    ? headCell(column, printed, 2) : make("th", { scope: "colgroup", colspan: count, class: "group" }, String(attack)));
  const lower = shown.filter((column) => column.setting).map((column) => headCell(column, printed));
  return [make("tr", {}, ...heads), make("tr", {}, ...lower)];
}

function headCell(column, printed, rows = 1) {
  const place = columns.indexOf(column);
  const sorted = order.column === place ? (order.descending ? "descending" : "ascending") : "none";
  const button = make("button", { type: "button", "data-column": place }, String(column.head));
  button.addEventListener("click", () => {
    order.descending = order.column === place ? !order.descending : Boolean(column.descends);
    order.column = place;
    showTable();
  });
  const content = printed ? String(column.head) : button;  // a button is not repeated on the next page
  return make("th", { scope: "col", rowspan: rows > 1 && rows, "aria-sort": sorted }, content);
}
