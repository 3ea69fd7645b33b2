// Colors that can be read on light and on dark paper.

const PAPER = { light: [253, 253, 252], dark: [21, 24, 27] };
const LEAST_CONTRAST = { light: 2, dark: 4 };
const WORST = { light: [240, 242, 243], dark: [35, 40, 45] };
const MIDDLE = { light: [144, 184, 214], dark: [38, 92, 133] };
const BEST = { light: [16, 78, 122], dark: [148, 205, 242] };

const channels = (hex) => [1, 3, 5].map((start) => parseInt(hex.slice(start, start + 2), 16));
const css = (rgb) => `rgb(${rgb.map(Math.round).join(" ")})`;
const mix = (from, to, share) => from.map((channel, place) => channel + (to[place] - channel) * share);

/** Contrast ratio of two colors (WCAG 2). */
function contrast(one, other) {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}

function luminance(rgb) {
  const linear = rgb.map((channel) => {
    const value = channel / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

/** The color itself, or the nearest mixture with white or black that stands out from the paper; black becomes white. */
function legible(hex, scheme) {
  const rgb = channels(hex);
  const gray = Math.max(...rgb) - Math.min(...rgb) < 16;
  if (gray && contrast(rgb, PAPER[scheme]) < LEAST_CONTRAST[scheme]) return css(rgb.map((channel) => 255 - channel));
  const end = scheme === "dark" ? [255, 255, 255] : [0, 0, 0];
  for (let share = 0; share < 1; share += 0.05) {
    const mixed = mix(rgb, end, share);
    if (contrast(mixed, PAPER[scheme]) >= LEAST_CONTRAST[scheme]) return css(mixed);
  }
  return css(end);
}

const both = (light, dark) => `light-dark(${light}, ${dark})`;

/** Color and dashes of an algorithm's line; a browser without light-dark() keeps the attribute. */
function paintLine(element, algorithm, property = "stroke") {
  const look = record.algorithms[algorithm];
  element.setAttribute(property, look.color);
  element.style.setProperty(property, both(legible(look.color, "light"), legible(look.color, "dark")));
  if (property === "stroke" && look.dash) element.setAttribute("stroke-dasharray", look.dash);
  return element;
}

/** Background of a heat map's cell, `share` from 0 (worst) to 1 (best), and a color to write on it. */
function paintCell(element, share) {
  const back = (scheme) => share < 0.5
    ? mix(WORST[scheme], MIDDLE[scheme], 2 * share) : mix(MIDDLE[scheme], BEST[scheme], 2 * share - 1);
  const ink = (scheme) => [[0, 0, 0], [255, 255, 255]]
    .sort((a, b) => contrast(b, back(scheme)) - contrast(a, back(scheme)))[0];
  element.style.backgroundColor = both(css(back("light")), css(back("dark")));
  element.style.color = both(css(ink("light")), css(ink("dark")));
  return element;
}
