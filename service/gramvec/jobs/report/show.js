// What reports and the page of review share: elements, marked texts, pairs, and the histogram with its threshold.
"use strict";

// Make an element: make("p", {class: "soft"}, "text", child, ...).
function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {}))
    if (value !== undefined && value !== null && value !== false) element.setAttribute(key, value === true ? "" : value);
  element.append(...children.filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

// Plots are as wide as the page, so that their letters are as large on a phone.
const plotWidth = (most) => Math.max(280, Math.min(most, document.documentElement.clientWidth - 64));
const plotStyle = "background: transparent; font-size: 13px; color: inherit";
const grouped = (number) => Math.round(number).toLocaleString("en-US");
const percent = (share) => `${(100 * share).toFixed(1)} %`;
const SPOKEN = { letters: "other letters", word: "another word", number: "another number" };

// Marked texts: segments are [text, kind] with kind "same" for what both texts have.
function marked(segments) {
  const line = make("div", { dir: "auto" });
  if (!segments.length) line.append(make("span", { class: "empty" }, "empty"));
  for (const [text, kind] of segments)
    line.append(kind === "same" ? text : make("mark", { class: kind, title: SPOKEN[kind] }, text));
  return line;
}

function columnsOf(pair) {
  const several = pair.columns.length > 1;
  const grid = make("div", { class: several ? "columns named" : "columns" });
  if (several) grid.append(make("span", { class: "corner" }));
  grid.append(make("span", { class: "ids" }, pair.left), make("span", { class: "ids" }, pair.right));
  for (const column of pair.columns) {
    if (several) grid.append(make("span", { class: "name" }, column.name));
    grid.append(marked(column.left), marked(column.right));
  }
  if (pair.note) grid.append(make("span", { class: "note" }, pair.note));
  return grid;
}

function pairRow(pair) {
  return make("div", { class: "pair", role: "listitem" }, make("b", {}, pair.score.toFixed(3)), columnsOf(pair));
}

const LEGEND = () => make("ul", { class: "legend", "aria-label": "What the marks mean" },
  make("li", {}, make("mark", { class: "letters" }, "letters"), " other letters within a word"),
  make("li", {}, make("mark", { class: "word" }, "word"), " another word"),
  make("li", {}, make("mark", { class: "number" }, "123"), " another number"));

// The first twenty, and the others behind a line that says how many they are.
const SHOWN = 20;
function firstOf(all, show) {
  const rest = all.length - SHOWN;
  return rest <= 0 ? [show(all)] : [show(all.slice(0, SHOWN)),
    make("details", {}, make("summary", {}, `${grouped(rest)} more`), show(all.slice(SHOWN)))];
}

// What lies from a threshold on: how many, and what is expected of them if scores are probabilities. Exact where all
// scores are known, else by bins.
function countFrom(scores, threshold) {
  if (scores.values) {
    const sum = (values) => values.reduce((total, one) => total + one, 0);
    const above = scores.values.filter((one) => one >= threshold), right = sum(above), all = sum(scores.values);
    return { above: above.length, precision: above.length ? right / above.length : 1, recall: all ? right / all : 1 };
  }
  const bins = scores.counts.length;
  const first = Math.min(bins, Math.max(0, Math.ceil(threshold * bins - 1e-9)));
  let above = 0, right = 0, all = scores.missing;
  for (let at = 0; at < bins; at++) {
    const expected = scores.counts[at] * Math.min(1, (at + 0.5) / bins);
    all += expected;
    if (at >= first) { above += scores.counts[at]; right += expected; }
  }
  // The job's own threshold may lie within a bin; what it counted from there on is known.
  if (threshold === scores.threshold && scores.above !== undefined) {
    right += (scores.above - above) * threshold;
    above = scores.above;
  }
  return { above, precision: above ? right / above : 1, recall: all > 0 ? right / all : 1 };
}

// The histogram of scores in 50 bars, colored from the threshold on. Counts differ by orders of magnitude: root scale.
function histogram(scores, threshold) {
  const width = 0.02, step = scores.counts.length * width;
  const bars = Array.from({ length: 50 }, (_, at) => ({
    from: at * width, to: (at + 1) * width,
    count: scores.counts.slice(Math.round(at * step), Math.round((at + 1) * step)).reduce((sum, one) => sum + one, 0),
  }));
  const split = bars.flatMap((bar) => threshold > bar.from && threshold < bar.to
    ? [{ ...bar, to: threshold, above: false }, { ...bar, from: threshold, above: true }]
    : [{ ...bar, above: bar.from >= threshold }]);
  const plot = Plot.plot({
    className: "plot", width: plotWidth(1040), height: 260, marginLeft: 60, marginBottom: 44, style: plotStyle,
    ariaLabel: `Histogram of the scores of ${scores.unit}; the threshold is ${threshold.toFixed(3)}`,
    x: { domain: [0, 1], label: "score", ticks: plotWidth(1040) / 80, labelOffset: 38 },
    y: { type: "sqrt", label: scores.unit, grid: true, nice: true },
    marks: [
      Plot.rectY(split, { x1: "from", x2: "to", y: "count", fill: (bar) => bar.above ? "var(--above)" : "var(--bar)", insetLeft: 0.5 }),
      Plot.ruleX([threshold], { stroke: "var(--bad)", strokeWidth: 2 }),
      Plot.ruleY([0]),
    ],
  });
  plot.setAttribute("role", "img");
  return make("figure", {}, plot);
}

// The histogram with a slider that counts again, and tells where it stands.
function thresholdSlider(scores, moved = () => {}) {
  const figure = make("div"), counts = make("ul", { class: "counts", "aria-live": "polite" });
  const slider = make("input", { type: "range", min: 0, max: 1, step: 0.001, value: scores.threshold, id: "threshold" });
  const shown = make("output", { for: "threshold" });
  const update = (threshold) => {
    // The slider moves by thousandths: at the place of the job's threshold it stands for that.
    if (Math.abs(threshold - scores.threshold) <= 0.0005) threshold = scores.threshold;
    const found = countFrom(scores, threshold);
    shown.textContent = threshold.toFixed(3);
    moved(threshold);
    figure.replaceChildren(histogram(scores, threshold));
    counts.replaceChildren(
      make("li", {}, make("b", {}, grouped(found.above)), ` ${scores.unit} from the threshold on`),
      ...(scores.probabilities ? [
        make("li", {}, make("b", {}, percent(found.precision)), " of them are expected to be right"),
        make("li", {}, make("b", {}, percent(found.recall)), " of the right ones are expected among them"),
      ] : []));
  };
  slider.addEventListener("input", () => update(Number(slider.value)));
  update(scores.threshold);  // which the slider rounds
  return [figure, make("div", { class: "row" }, make("label", { for: "threshold" }, "Threshold"), shown), slider, counts];
}

function scoresSection(scores) {
  return make("section", { "aria-labelledby": "scores-title" }, make("h2", { id: "scores-title" }, "Scores and the threshold"),
    ...thresholdSlider(scores),
    make("p", { class: "soft" }, `The job used ${scores.threshold.toFixed(3)}. Move the slider to count again; the job is not run again. ${scores.note}`),
    thresholdTable(scores));
}

function thresholdTable(scores) {
  const rows = [0.1, 0.2, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99].map((threshold) => {
    const found = countFrom(scores, threshold);
    return [threshold.toFixed(2), grouped(found.above), ...(scores.probabilities ? [percent(found.precision), percent(found.recall)] : [])];
  });
  const columns = ["threshold", scores.unit, ...(scores.probabilities ? ["expected precision", "expected recall"] : [])];
  return make("details", {}, make("summary", {}, "The same as a table"), tableOf(columns, rows));
}

function tableOf(columns, rows) {
  const numeric = columns.map((_, at) => rows.length > 0 && rows.every((row) => /^[-+\d.,/]+( %)?$/.test(row[at])));
  // Short words stay whole; only what would push the table off the page breaks within a word.
  const whole = (text) => text.split(/\s+/).every((word) => word.length <= 24);
  const cell = (name, text, at) => make(name, { class: numeric[at] ? "number" : whole(text) ? "whole" : undefined, dir: "auto" }, text);
  return make("div", { class: "scroll" }, make("table", {},
    make("thead", {}, make("tr", {}, ...columns.map((name, at) => cell("th", name, at)))),
    make("tbody", {}, ...rows.map((row) => make("tr", {}, ...row.map((text, at) => cell("td", text, at)))))));
}
