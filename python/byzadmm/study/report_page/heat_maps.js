// Heat maps of final values: algorithms by attacks, a map per number of Byzantine workers and partition.

/** Place of a final value between the worst (0), what diverges apart, and the best (1). */
function ranking() {
  const found = axes.algorithm.flatMap((algorithm) => cases.map((setting) => ({
    values: finalOf(algorithm, setting).values, apart: diverges(curveOf(algorithm, setting, record.metric)),
  }))).filter(({ values }) => values !== null);
  const kept = found.filter(({ apart }) => !apart);
  const means = (kept.length ? kept : found).map(({ values }) => values.mean);
  const beyond = kept.length > 0 && kept.length < found.length;
  const [low, high] = finalsAreShares && record.metric === "accuracy"
    ? [0, 1] : [means.reduce((a, b) => Math.min(a, b), Infinity), means.reduce((a, b) => Math.max(a, b), -Infinity)];
  const logarithmic = low > 0 && high / low > WIDE_RANGE;
  const along = (value) => (logarithmic ? Math.log(value) : value);
  const within = (value) => Math.max(low, Math.min(high, value));
  const up = (value) => (along(within(value)) - along(low)) / (along(high) - along(low));
  const rank = (value) => (high === low ? 1 : record.higher_is_better ? up(value) : 1 - up(value));
  return { low, high, logarithmic, beyond, rank };
}

function showMaps() {
  const scale = ranking();
  byId("maps-caption").textContent = `Final ${words(record.metric)}, ` +
    `${axes.seed.length > 1 ? `mean over ${axes.seed.length} seeds` : "one seed"}. ` +
    "Hatched cells have no value, for the reason that they name.";
  if (finalValues.length) byId("scale").append(...scaleBar(scale));
  byId("heat").append(...settings.map((setting) => heatMap(setting, scale)));
}

function scaleBar({ low, high, logarithmic, beyond }) {
  const [worst, best] = record.higher_is_better ? [low, high] : [high, low];
  const bar = make("span", { class: "bar", "aria-hidden": "true" },
    ...Array.from({ length: 11 }, (_, place) => paintCell(make("span"), place / 10)));
  return [make("span", {}, `worst ${finalNumber(worst, 2)}${beyond ? " and beyond" : ""}`), bar,
    make("span", {}, `best ${finalNumber(best, 2)}${logarithmic ? " (logarithmic)" : ""}`)];
}

function heatMap(setting, scale) {
  const head = make("tr", {}, make("td"), ...axes.attack.map((attack) => make("th", { scope: "col" }, String(attack))));
  const rows = axes.algorithm.map((algorithm) => make("tr", {}, algorithmCell(algorithm),
    ...axes.attack.map((attack) => {
      const final = finalOf(algorithm, { attack, ...setting });
      if (final.values !== null) {
        return paintCell(make("td", {}, finalNumber(final.values.mean, 2)), scale.rank(final.values.mean));
      }
      return make("td", { class: "hatched", title: final.reasons.join("; ") }, make("span", {}, final.state));
    })));
  const title = inWords(setting, true);
  const table = make("table", { class: "heat" }, make("caption", {}, make("span", {}, title)),
    make("thead", {}, head), make("tbody", {}, ...rows));
  return make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Heat map, ${title}` }, table);
}
