// The page of a report: what `data` holds, section by section.
"use strict";

const report = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");

function section(title, ...children) {
  const id = `s${page.childElementCount}`;
  return make("section", { "aria-labelledby": id }, make("h2", { id }, title), ...children);
}

function pairSection(list) {
  return section(list.title, make("p", { class: "soft" }, list.note),
    list.pairs.length ? LEGEND() : make("p", { class: "empty" }, "There are none."),
    make("div", { role: "list" }, ...list.pairs.map(pairRow)));
}

function groupSection(groups) {
  const plot = Plot.plot({
    width: plotWidth(1040), height: 200, marginLeft: 60, marginBottom: 44, style: plotStyle,
    ariaLabel: "Groups by the number of their rows",
    x: { label: "rows in a group", type: "band" }, y: { label: "groups", grid: true, type: "sqrt" },
    marks: [Plot.barY(groups.sizes, { x: (row) => row[0], y: (row) => row[1], fill: "var(--above)" }), Plot.ruleY([0])],
  });
  plot.setAttribute("role", "img");
  return section("Groups of duplicates", make("figure", {}, plot),
    make("details", {}, make("summary", {}, "The same as a table"),
      tableOf(["rows in a group", "groups"], groups.sizes.map((row) => row.map(grouped)))),
    make("p", { class: "soft" }, "The largest groups: the row that stays first, then those that go."),
    ...groups.largest.map((group) => make("details", {},
      make("summary", {}, `${grouped(group.rows)} rows: ${group.kept}`),
      make("ul", {}, ...group.others.map((text) => make("li", { dir: "auto" }, text)),
        group.rows > 1 + group.others.length && make("li", {}, `${grouped(group.rows - 1 - group.others.length)} more`)))));
}

function calibrationSection(calibration) {
  const plot = Plot.plot({
    width: plotWidth(460), height: 380, marginBottom: 44, style: plotStyle, grid: true,
    ariaLabel: "Calibration: share of right answers by score",
    x: { domain: [0, 1], label: "score", labelOffset: 38 }, y: { domain: [0, 1], label: "share of right answers" },
    marks: [
      Plot.line([[0, 0], [1, 1]], { stroke: "var(--soft)", strokeDasharray: "4 4" }),
      Plot.line(calibration.bins, { x: "score", y: "right", stroke: "var(--above)", strokeWidth: 2 }),
      Plot.dot(calibration.bins, { x: "score", y: "right", r: "count", fill: "var(--above)", title: (bin) => grouped(bin.count) }),
    ],
  });
  plot.setAttribute("role", "img");
  return section("How honest the scores are", make("p", { class: "soft" },
    `Of answers with a score of 0.8, 80 % should be right: the dashed line. On average the score is ${percent(calibration.error)} off.`),
  make("figure", {}, plot), make("details", {}, make("summary", {}, "The same as a table"),
    tableOf(["mean score", "right", "answers"],
      calibration.bins.map((bin) => [bin.score.toFixed(3), percent(bin.right), grouped(bin.count)]))));
}

function confusionSection(confusion) {
  const highest = Math.max(1, ...confusion.counts.flatMap((row, at) => row.filter((_, other) => other !== at)));
  const cell = (count, at, other) => make("td", {
    style: count && at !== other ? `background: color-mix(in srgb, var(--word) ${Math.round(30 + 70 * count / highest)}%, transparent)` : undefined,
  }, count ? String(count) : "");
  return section("Labels that are confused most",
    make("p", { class: "soft" }, "A row is the right label, a column the answer. The diagonal holds right answers."),
    make("div", { class: "scroll" }, make("table", { class: "matrix" },
      make("thead", {}, make("tr", {}, make("td"), ...confusion.labels.map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, ...confusion.counts.map((row, at) => make("tr", {}, make("th", { scope: "row" }, confusion.labels[at]),
        ...row.map((count, other) => cell(count, at, other))))))),
    make("details", {}, make("summary", {}, `${confusion.examples.length} texts with a wrong answer`), textTable(confusion.examples)));
}

function textTable(texts) {
  const labeled = texts.some((one) => one.label);
  return tableOf(["text", ...(labeled ? ["label"] : []), "answer", "score"],
    texts.map((one) => [one.text, ...(labeled ? [one.label] : []), one.answer, one.score.toFixed(3)]));
}

// A dot for each value, a row of dots for each set, a color for each model; all figures stand in the table below.
function comparisonSection(comparison) {
  const rows = new Set(comparison.values.map((one) => one.row)).size;
  const longest = Math.max(0, ...comparison.values.map((one) => one.row.length));
  const plot = comparison.values.length && Plot.plot({
    width: plotWidth(1040), height: 60 + 22 * rows, marginLeft: Math.min(20 + 7 * longest, plotWidth(1040) / 2),
    marginBottom: 40, style: plotStyle, grid: true, ariaLabel: comparison.title, color: { legend: true },
    x: { nice: true, label: null }, y: { label: null, domain: [...new Set(comparison.values.map((one) => one.row))] },
    marks: [Plot.dot(comparison.values, {
      x: "value", y: "row", fill: "series", r: 5, title: (one) => `${one.series}: ${one.value}`,
    })],
  });
  if (plot) plot.querySelector("svg[aria-label]").setAttribute("role", "img");
  return section(comparison.title, plot && make("div", { class: "scroll" }, plot),
    tableOf(comparison.table.columns, comparison.table.rows));
}

function learningSection(points) {
  const plot = Plot.plot({
    width: plotWidth(700), height: 260, marginLeft: 50, style: plotStyle, grid: true,
    ariaLabel: `Learning curve: ${report.learning_measure} by the number of labels`,
    x: {
      label: "labels", type: points.length > 1 && points[0].labels > 0 ? "log" : "linear",
      ticks: points.map((point) => point.labels), tickFormat: grouped,
    },
    y: { label: report.learning_measure, zero: false },
    marks: [Plot.line(points, { x: "labels", y: "value", stroke: "var(--above)" }),
      Plot.dot(points, { x: "labels", y: "value", fill: "var(--above)" })],
  });
  plot.setAttribute("role", "img");
  return section("What more labels give", make("p", { class: "soft" },
    "Every point is measured on the same texts, which were left out, near copies with them."), make("figure", {}, plot), tableOf(["labels", report.learning_measure],
    points.map((point) => [grouped(point.labels), percent(point.value)])));
}

page.replaceChildren(make("header", {}, make("h1", {}, report.title), make("p", {}, report.summary)));
page.append(section("What was done", make("dl", {}, ...report.facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]))));
for (const one of report.comparisons) page.append(comparisonSection(one));
if (report.scores) page.append(scoresSection(report.scores));
for (const list of report.pairs) page.append(pairSection(list));
if (report.groups) page.append(groupSection(report.groups));
if (report.calibration) page.append(calibrationSection(report.calibration));
if (report.confusion && report.confusion.labels.length) page.append(confusionSection(report.confusion));
if (report.learning.length) page.append(learningSection(report.learning));
for (const list of report.texts) page.append(section(list.title, make("p", { class: "soft" }, list.note), textTable(list.texts)));
for (const table of report.tables) page.append(section(table.title, tableOf(table.columns, table.rows)));
document.body.dataset.ready = "true";
