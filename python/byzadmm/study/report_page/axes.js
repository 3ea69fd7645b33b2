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

/** Ticks at powers of ten, at 1, 2 and 5 times them where there are few, between two exponents. */
function logarithmicTicks(low, high, count) {
  const first = Math.floor(low);
  const last = Math.ceil(high);
  const every = Math.max(1, Math.ceil((last - first) / count));
  const factors = last - first <= 2 ? [1, 2, 5] : [1];
  const ticks = [];
  for (let exponent = first; exponent <= last; exponent += every) {
    for (const factor of factors) {
      const place = exponent + Math.log10(factor);
      if (place >= low && place <= high) ticks.push(Number(`${factor}e${exponent}`));
    }
  }
  return ticks;
}

/** An axis from `low` to `high`, with some room unless it is `exact`; `at` gives the share of its length. */
function scaleOf([low, high], logarithmic, exact = false) {
  if (logarithmic) {  // in exponents: the ratio of two numbers can be beyond the largest number
    const [least, greatest] = [Math.log10(low), Math.log10(high)];
    const room = Math.max(0.04 * (greatest - least), Math.log10(1.05));
    const [from, to] = [least - room, greatest + room];
    return {
      ticks: logarithmicTicks(from, to, 5),
      at: (value) => (Math.max(Math.log10(Math.max(value, 0)), from) - from) / (to - from),
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
