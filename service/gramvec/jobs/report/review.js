// The page of a review: one question at a time, by keyboard or by button. Questions are about pairs or about labels.
"use strict";

const review = JSON.parse(document.getElementById("data").textContent);
const page = document.getElementById("page");
let current = null, busy = false;

async function ask(path, body) {
  if (busy) return;
  busy = true;
  update();
  try {
    const response = await fetch(path, body === undefined ? {} : {
      method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body),
    });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error || `The server answered ${response.status}.`);
    current = answer;
    fault.textContent = "";
  } catch (error) {
    fault.textContent = error instanceof TypeError ? "The review has ended: its command is not running any more." : error.message;
  } finally {
    busy = false;
    update();
  }
}

// What finishing does is shown while it works, because it may take minutes.
async function write() {
  const began = performance.now();
  const show = async () => {
    let task = "";
    try {
      const now = await (await fetch("work")).json();
      task = now.task && `: ${now.task}${now.share === null ? "" : `, ${percent(now.share)}`}`;
    } catch { /* the answer to finish says what is wrong */ }
    if (current && !current.finished) {
      work.textContent = `Learning from all answers and writing the results${task} (${Math.round((performance.now() - began) / 1000)} s). `
        + "Answers are on disk already.";
    }
  };
  show();
  const timer = setInterval(show, 1000);
  await ask("finish", {});
  clearInterval(timer);
  work.textContent = current && current.finished ? `Written in ${Math.round((performance.now() - began) / 1000)} s.` : "";
}

const REASONS = {
  near: "Asked because its score is near the threshold, where an answer teaches most.",
  sure: "Asked because it seems to be sure: a wrong one among these teaches most of all.",
  sample: "Asked as one of a sample of all scores, on which the estimates stand.",
  unsure: "Asked because the head is unsure of it, and many texts are like it.",
};
const why = (reason) => REASONS[reason] ? make("p", { class: "soft", id: "reason" }, REASONS[reason]) : "";

const reply = (answer) => current && current.question && ask("answers", { id: current.question.id, answer });
const button = (name, label, key, action) => {
  const element = make("button", { type: "button", class: name, "aria-keyshortcuts": key }, label, " ", make("kbd", {}, key));
  element.addEventListener("click", action);
  return element;
};
const undo = button("", "Undo", review.kind === "pairs" ? "z" : "u", () => ask("undo", {}));
const finish = button("", "Finish and write", "f", write);
const work = make("p", { class: "soft", role: "status", id: "work" });
const fault = make("p", { class: "fault", role: "alert" });
const question = make("div", { "aria-live": "polite" }), progress = make("div"), figure = make("div");

const count = (number, name) => make("li", {}, make("b", {}, grouped(number)), ` ${name}`);
const rounds = () => `Learned ${current.rounds} ${current.rounds === 1 ? "time" : "times"} from the answers.`;

// Each kind has its answers, the keys that give them, what it shows of a question, and what it counts.
function pairQuestions() {
  const yes = button("yes", "Yes", "y", () => reply("yes"));
  const no = button("no", "No", "n", () => reply("no"));
  const unsure = button("", "Not sure", "u", () => reply("unsure"));
  const share = (name, value) =>
    make("li", {}, make("b", {}, percent(value.value)), ` ${name} (${percent(value.lower)} to ${percent(value.upper)})`);
  return {
    answers: () => [yes, no, unsure], controls: make("div", { class: "row" }, yes, no, unsure, undo), above: LEGEND(),
    show: ({ pair, reason }) => make("div", {}, make("p", { class: "soft" }, `Score ${pair.score.toFixed(3)}`), why(reason), columnsOf(pair)),
    counts: () => [count(current.yes, "yes"), count(current.no, "no"), count(current.unsure, "not sure"),
      current.estimate && share("precision", current.estimate.precision),
      current.estimate && (current.knows_far ? share("recall among the candidates", current.estimate.recall)
        : make("li", {}, "recall is not known: few pairs with low scores were asked about")),
      current.unknown && count(current.unknown, "answers in the file are of other pairs, and do not count here")],
    status: () => current.rounds ? rounds() : "After five answers of each kind it is learned from them.",
    note: "The intervals hold nine in ten. Pairs of rows that have too little in common to be candidates are never asked about and in no estimate. Each answer is on disk before the next question is shown.",
  };
}

function labelQuestions() {
  let choices = [];
  const unsure = button("", "Not sure", "s", () => reply(""));
  const field = make("input", { type: "text", id: "typed", list: "labels", autocomplete: "off", maxlength: 900, spellcheck: "false" });
  const known = make("datalist", { id: "labels" });
  const group = make("div", { class: "choices", role: "group", "aria-label": "Labels" });
  const other = button("", "Another label", "t", () => field.focus());
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") field.blur();
    if (event.key !== "Enter" || busy || !field.value.trim()) return;
    event.preventDefault();
    reply(field.value);
    field.value = "";
    field.blur();
  });
  const choice = ({ label, score }, at) => {
    const element = button("choice", label, String(at + 1), () => reply(label));
    element.prepend(make("span", { class: "share" }, percent(score)), " ");
    element.style.setProperty("--share", percent(score).replace(" ", ""));
    return element;
  };
  return {
    answers: () => [...choices, unsure, other], above: "",
    controls: make("div", {}, group, make("div", { class: "row" }, other,
      make("label", { for: "typed", class: "hidden" }, "Another label"), field, known, unsure, undo)),
    show: ({ text, reason, choices: offered }) => {
      choices = offered.map(choice);
      group.replaceChildren(...choices);
      return make("div", {}, make("p", { class: "text", dir: "auto" }, text), why(reason));
    },
    counts: () => {
      known.replaceChildren(...current.labels.map((label) => make("option", { value: label })));
      const texts = current.scores.counts.reduce((sum, one) => sum + one, 0);
      return [count(current.answers, "labels"), count(current.unsure, "not sure"), count(current.known, `of ${grouped(texts)} texts are known`)];
    },
    status: () => {
      if (!current.rounds) return "After ten answers a head is learned from them.";
      if (!current.right) return rounds();
      const [first, learned] = current.right.map(percent);
      return `${rounds()} Of the answers here the first head has ${first} right and the learned head ${learned}, each left out; `
        + `what is shown is the ${current.is_first ? "first" : "learned"} head's.`;
    },
    note: "The histogram is of the best labels. Each answer is on disk before the next text is shown.",
  };
}

const kind = review.kind === "pairs" ? pairQuestions() : labelQuestions();

function update() {
  if (current && !busy) {
    question.replaceChildren(current.finished
      ? make("div", {}, make("h2", {}, "Finished"), ...current.finished.map((line) => make("p", {}, line)))
      : current.question ? kind.show(current.question) : make("p", {}, "Everything is answered."));
    progress.replaceChildren(make("ul", { class: "counts" }, ...kind.counts().filter((one) => one)),
      make("p", { class: "soft", role: "status" }, current.problem || (current.learning ? "Learning from the answers …" : kind.status())));
    figure.replaceChildren(histogram(current.scores, current.scores.threshold));
  }
  for (const one of kind.answers()) one.disabled = busy || !current || !current.question || !!current.finished;
  undo.disabled = busy || !current || !current.can_undo || !!current.finished;
  finish.disabled = busy || !current || !!current.finished;
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.target instanceof HTMLInputElement) return;
  const pressed = event.key.toLowerCase();
  const action = [...kind.answers(), undo, finish].find((one) => one.getAttribute("aria-keyshortcuts") === pressed);
  if (action && !action.disabled) { event.preventDefault(); action.click(); }
});

page.replaceChildren(
  make("header", {}, make("h1", {}, review.title)),
  make("section", { "aria-labelledby": "question" }, make("h2", { id: "question" }, review.question), kind.controls, fault,
    kind.above, question),
  make("section", { "aria-labelledby": "progress" }, make("h2", { id: "progress" }, "So far"), progress, figure,
    make("p", { class: "soft" }, kind.note),
    make("div", { class: "row" }, finish), work));
ask("state").then(() => { document.body.dataset.ready = "true"; });
setInterval(() => { if (current && current.learning && !busy) ask("state"); }, 1500);
