// Scales of a plot: ticks of a linear or logarithmic axis, and places in the picture.

/** Ticks at 1, 2 or 5 times a power of ten, about `count` of them. */
function linearTicks(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const ticks = [];
  for (let place = Math.ceil(low / step - 1e-9); place * step <= high + step * 1e-9; place += 1) {
    ticks.push(Number((place * step).toPrecision(12)));
  }
  return ticks;
}

/** Ticks at powers of ten, at 1, 2 and 5 times them where there are few. */
function logarithmicTicks(low, high, count) {
  const first = Math.floor(Math.log10(low));
  const last = Math.ceil(Math.log10(high));
  const every = Math.max(1, Math.ceil((last - first) / count));
  const factors = last - first <= 2 ? [1, 2, 5] : [1];
  const ticks = [];
  for (let exponent = first; exponent <= last; exponent += every) {
    for (const factor of factors) ticks.push(factor * 10 ** exponent);
  }
  return ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
}

/** An axis from `low` to `high`, with some room unless it is `exact`; `at` gives the share of its length. */
function scaleOf([low, high], logarithmic, exact = false) {
  if (logarithmic) {
    const room = Math.max((high / low) ** 0.04, 1.05);
    low /= room;
    high *= room;
    const width = Math.log(high) - Math.log(low);
    return {
      ticks: logarithmicTicks(low, high, 5),
      at: (value) => (Math.log(Math.max(value, low)) - Math.log(low)) / width,
    };
  }
  if (!exact) {
    const room = (high - low) * 0.04 || Math.abs(high) * 0.1 || 1;
    if (low < 0 || low > room) low -= room;
    high += room;
  }
  return { ticks: linearTicks(low, high, 5), at: (value) => (value - low) / (high - low) };
}

function axisNumber(value) {
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e5 || size < 1e-3)) {
    const [factor, exponent] = value.toExponential().split("e");
    return `${factor}e${Number(exponent)}`.replaceAll("-", "\u2212");
  }
  return String(Number(value.toPrecision(6))).replaceAll("-", "\u2212");
}
