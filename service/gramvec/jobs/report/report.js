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
    ...firstOf(list.pairs, (pairs) => make("div", { role: "list" }, ...pairs.map(pairRow))));
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

// Where a share of so many answers lies in nine of ten cases, by Wilson's interval.
function interval(share, count) {
  const z = 1.645, spread = z * Math.sqrt(share * (1 - share) / count + z * z / (4 * count * count));
  const middle = share + z * z / (2 * count), scale = 1 + z * z / count;
  return { low: (middle - spread) / scale, high: (middle + spread) / scale };
}

function calibrationSection(calibration) {
  const bins = calibration.bins.map((bin) => ({ ...bin, ...interval(bin.right, bin.count) }));
  const plot = Plot.plot({
    width: plotWidth(640), height: 320, marginBottom: 44, marginLeft: 50, marginTop: 26, style: plotStyle, grid: true,
    ariaLabel: "Calibration: share of right answers by score",
    x: { domain: [0, 1], label: "score", labelOffset: 38 },
    y: { domain: [0, 1], label: "share of right answers", tickFormat: (share) => `${Math.round(100 * share)} %` },
    marks: [
      Plot.line([[0, 0], [1, 1]], { stroke: "var(--soft)", strokeDasharray: "4 4" }),
      Plot.ruleX(bins, { x: "score", y1: "low", y2: "high", stroke: "var(--bar)", strokeWidth: 5 }),
      Plot.dot(bins, { x: "score", y: "right", r: 5, fill: "var(--above)", title: (bin) => `${percent(bin.right)} of ${grouped(bin.count)}` }),
    ],
  });
  plot.setAttribute("role", "img");
  return section("How honest the scores are", make("p", { class: "soft" },
    `Of answers with a score of 0.8, 80 % should be right: the dashed line. On average the score is ${percent(calibration.error)} off.`),
  make("p", { class: "soft" }, "A dot is the share of a tenth of the scores that is right; its bar holds nine of ten shares that as many other texts would give. A long bar has few answers."),
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
  return make("div", {}, ...firstOf(texts, (some) => tableOf(["text", ...(labeled ? ["label"] : []), "answer", "score"],
    some.map((one) => [one.text, ...(labeled ? [one.label] : []), one.answer, one.score.toFixed(3)]))));
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
    width: plotWidth(640), height: 260, marginLeft: 64, marginBottom: 44, style: plotStyle, grid: true,
    ariaLabel: `Learning curve: ${report.learning_measure} by the number of labels`,
    x: {
      label: "labels", labelOffset: 38, type: points.length > 1 && points[0].labels > 0 ? "log" : "linear",
      ticks: points.map((point) => point.labels), tickFormat: grouped,
    },
    y: { label: report.learning_measure, zero: false, tickFormat: percent },
    marks: [Plot.line(points, { x: "labels", y: "value", stroke: "var(--above)" }),
      Plot.dot(points, { x: "labels", y: "value", fill: "var(--above)" })],
  });
  plot.setAttribute("role", "img");
  return section("What more labels give", make("p", { class: "soft" },
    "Every point is measured on the same texts, which were left out, near copies with them."), make("figure", {}, plot), tableOf(["labels", report.learning_measure],
    points.map((point) => [grouped(point.labels), percent(point.value)])));
}

// The first sentence says what was done, the second what looks doubtful, with a link to each.
function doubtsOf(links) {
  if (!links.length) return make("p", {}, "Nothing looks doubtful.");
  const ends = (at) => at === links.length - 1 ? "." : at === links.length - 2 ? " and " : ", ";
  return make("p", {}, "To look at: ", ...links.flatMap(([id, doubt], at) => [make("a", { href: `#${id}` }, doubt), ends(at)]));
}

const doubts = [];
function show(part, drawn) {
  page.append(drawn);
  if (part.doubt) doubts.push([drawn.getAttribute("aria-labelledby"), part.doubt]);
}

const header = make("header", {}, make("h1", {}, report.title),
  make("p", { class: "summary" }, /[.!?]$/.test(report.summary) ? report.summary : `${report.summary}.`));
page.replaceChildren(header);
for (const one of report.comparisons) page.append(comparisonSection(one));
if (report.scores) page.append(scoresSection(report.scores));
for (const list of report.pairs) show(list, pairSection(list));
if (report.groups) show(report.groups, groupSection(report.groups));
if (report.calibration) page.append(calibrationSection(report.calibration));
if (report.confusion && report.confusion.labels.length) page.append(confusionSection(report.confusion));
if (report.learning.length) page.append(learningSection(report.learning));
for (const list of report.texts) show(list, section(list.title, make("p", { class: "soft" }, list.note), textTable(list.texts)));
for (const table of report.tables)
  show(table, section(table.title, ...firstOf(table.rows, (rows) => tableOf(table.columns, rows))));
header.append(doubtsOf(doubts));
page.append(section("How this was made",
  make("dl", {}, ...report.facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]))));
document.body.dataset.ready = "true";
