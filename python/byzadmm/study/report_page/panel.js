// One plot: axes, bands, lines, and the crosshair with values at the pointer.

const EDGE = { left: 52, right: 10, top: 22, bottom: 34 };
const LONG = 14;  // values of the readout: more are in two columns, or the first of them where the window is narrow
const NARROW = 600;
const FAR = 100;  // lengths of the axis
let read = null;  // the plot whose values are shown

/** A figure of `lines` ({algorithm, points}) that share the scales `x` and `y`. */
function makePanel(title, lines, { x, y, width, height, metric, positive }) {
  const inner = { width: width - EDGE.left - EDGE.right, height: height - EDGE.top - EDGE.bottom };
  const left = (k) => EDGE.left + x.at(k) * inner.width;
  // What is far beyond the axis stays within the numbers of a drawing.
  const top = (value) => EDGE.top + (1 - Math.max(-FAR, Math.min(FAR, y.at(value)))) * inner.height;
  const valid = (value) => value !== null && (!positive || value > 0);
  const steps = [...new Set(lines.flatMap((line) => line.points.map((point) => point.k)))].sort((a, b) => a - b);
  const svg = draw("svg", {
    viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "slider",
    "aria-label": `${words(metric)} by ${byTime ? xName : "iteration"}, ${title}; arrow keys read values`,
    "aria-valuemin": steps[0] ?? 0, "aria-valuemax": steps.at(-1) ?? 0, "aria-valuenow": steps[0] ?? 0,
    "aria-valuetext": steps.length ? "no values read yet" : "no finished run",
  });
  svg.append(frame(x, y, { left, top, inner, width, height, metric }));
  // An inner drawing cuts off what is beyond the axes.
  const area = { x: EDGE.left, y: EDGE.top - 2, width: inner.width + 2, height: inner.height + 4 };
  svg.append(draw("svg", { ...area, viewBox: Object.values(area).join(" ") },
    ...lines.map((line) => band(line, left, top, valid)), ...lines.map((line) => mean(line, left, top, valid))));
  if (!steps.length) {
    svg.append(draw("text", { x: EDGE.left + inner.width / 2, y: EDGE.top + inner.height / 2, class: "middle" },
      "nothing to draw"));
  }
  addCrosshair(svg, title, lines, steps, { left, top, valid, width, height, metric });
  return make("figure", { class: "panel" }, make("figcaption", {}, String(title)), svg);
}

function frame(x, y, { left, top, inner, width, height, metric }) {
  const group = draw("g", { class: "frame", "aria-hidden": "true" });
  for (const tick of y.ticks) {
    group.append(
      draw("line", { x1: EDGE.left, x2: width - EDGE.right, y1: top(tick), y2: top(tick) }),
      draw("text", { x: EDGE.left - 6, y: top(tick) + 4, class: "end" }, axisNumber(tick)));
  }
  const floor = EDGE.top + inner.height;
  for (const tick of x.ticks) {
    group.append(
      draw("line", { x1: left(tick), x2: left(tick), y1: floor, y2: floor + 4 }),
      draw("text", { x: left(tick), y: floor + 16, class: x.at(tick) > 0.96 ? "end" : "middle" }, axisNumber(tick)));
  }
  group.append(
    draw("line", { x1: EDGE.left, x2: width - EDGE.right, y1: floor, y2: floor, class: "base" }),
    draw("text", { x: EDGE.left + inner.width / 2, y: height - 4, class: "middle" }, xName),
    draw("text", { x: 2, y: 12 }, words(metric)));
  return group;
}

/** Runs of points whose values can be drawn. */
function pieces(points, valid) {
  const found = [[]];
  for (const point of points) {
    if (valid(point.mean)) found.at(-1).push(point);
    else if (found.at(-1).length) found.push([]);
  }
  return found.filter((piece) => piece.length);
}

const place = (left, top) => `${left.toFixed(1)} ${top.toFixed(1)}`;

function band({ algorithm, points }, left, top, valid) {
  const path = pieces(points, valid).map((piece) => {
    const upper = piece.map((point) => place(left(point.k), top(point.high)));
    const lower = piece.map((point) => place(left(point.k), top(point.low))).reverse();
    return `M${[...upper, ...lower].join("L")}Z`;
  });
  return paintLine(draw("path", { class: "band", d: path.join(""), "data-algorithm": algorithm }), algorithm, "fill");
}

function mean({ algorithm, points }, left, top, valid) {
  const path = pieces(points, valid).map((piece) => {
    const along = piece.map((point) => place(left(point.k), top(point.mean))).join("L");
    return piece.length > 1 ? `M${along}` : `M${along}h0.1`;  // the round end of a line: a dot
  });
  return paintLine(draw("path", { class: "mean", d: path.join(""), "data-algorithm": algorithm }), algorithm);
}

/** The point of a line at `k`; by time, where lines are evaluated at times of their own, the last one before it. */
function pointAt(points, k) {
  if (byTime && k <= points.at(-1).k) return points.findLast((point) => point.k <= k);
  return points.find((point) => point.k === k);
}

function addCrosshair(svg, title, lines, steps, { left, top, valid, width, height, metric }) {
  const cross = draw("g", { class: "cross", "aria-hidden": "true" });
  svg.append(cross);
  const inside = (value) => top(value) > EDGE.top - 3 && top(value) < height - EDGE.bottom + 3;
  let current = 0;

  function show(step, where) {
    current = step;
    read = svg;
    const k = steps[step];
    const values = lines
      .map(({ algorithm, points }) => ({ algorithm, point: pointAt(points, k) }))
      .filter(({ point }) => point !== undefined)
      .sort((a, b) => (a.point.mean === null) - (b.point.mean === null) || b.point.mean - a.point.mean);
    cross.replaceChildren(
      draw("line", { x1: left(k), x2: left(k), y1: EDGE.top, y2: height - EDGE.bottom }),
      ...values.filter(({ point }) => valid(point.mean) && inside(point.mean)).map(({ algorithm, point }) =>
        paintLine(draw("circle", { cx: left(k), cy: top(point.mean), r: 3 }), algorithm, "fill")));
    svg.setAttribute("aria-valuenow", k);
    svg.setAttribute("aria-valuetext", `${atPlace(k)}: ` +
      values.map(({ algorithm, point }) => `${algorithm} ${number(point.mean)}`).join(", "));
    showReadout(k, values, metric, where);
  }

  function hide() {
    cross.replaceChildren();
    if (read === svg) byId("readout").hidden = true;
  }

  const across = (k) => {
    const box = svg.getBoundingClientRect();
    return { x: box.left + left(k) / width * box.width, y: box.top + box.height / 3 };
  };
  const follow = (event) => {
    if (!steps.length) return;
    const box = svg.getBoundingClientRect();
    const at = (event.clientX - box.left) / box.width * width;
    const distance = (step) => Math.abs(left(steps[step]) - at);
    const nearest = steps.reduce((best, _, step) => (distance(step) < distance(best) ? step : best), 0);
    show(nearest, { x: across(steps[nearest]).x, y: event.clientY });
  };
  svg.addEventListener("pointermove", follow);
  svg.addEventListener("pointerdown", follow);
  svg.addEventListener("pointerleave", (event) => {
    if (event.pointerType !== "touch") hide();  // a finger leaves when it is lifted
  });
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    const to = { ArrowLeft: current - 1, ArrowDown: current - 1, ArrowRight: current + 1, ArrowUp: current + 1,
      Home: 0, End: steps.length - 1 }[event.key];
    if (to === undefined || !steps.length) return;
    event.preventDefault();
    const first = byId("readout").hidden && event.key.startsWith("Arrow");  // shows where the crosshair is
    const step = first ? current : Math.min(Math.max(to, 0), steps.length - 1);
    show(step, across(steps[step]));
  });
}

/** The box with the values at one evaluation, the highest first, beside the crosshair and inside the window. */
function showReadout(k, values, metric, where) {
  const box = byId("readout");
  const room = document.documentElement.clientWidth;
  const listed = room < NARROW ? values.slice(0, LONG) : values;
  const decimals = values.every(({ point }) => point.mean === null || isShare([point.low, point.high])) ? 3 : null;
  const rows = listed.map(({ algorithm, point }) => {
    const range = axes.seed.length > 1 && point.mean !== null
      ? `${number(point.low, decimals)}\u2013${number(point.high, decimals)}` : "";
    return make("li", {}, swatch(algorithm), make("span", { class: "name" }, algorithm),
      make("span", { class: "value" }, number(point.mean, decimals)), make("span", { class: "range" }, range));
  });
  const more = values.length - listed.length;
  box.replaceChildren(make("p", {}, `${words(metric)} at ${atPlace(k)}`),
    make("ul", { class: rows.length > LONG ? "two" : "" }, ...rows), more ? make("p", {}, `and ${more} below`) : "");
  box.hidden = false;
  const { width, height } = box.getBoundingClientRect();
  const beside = where.x + 14 + width <= room ? where.x + 14 : where.x - 14 - width;
  box.style.left = `${Math.max(4, Math.min(beside, room - width - 4))}px`;
  box.style.top = `${Math.max(4, Math.min(where.y - height / 2, window.innerHeight - height - 4))}px`;
}
