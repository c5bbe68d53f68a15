// The page of a review: one question at a time, by keyboard or by button.
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

const reply = (answer) => current && current.question && ask("answers", { id: current.question.id, answer });
const button = (name, label, key, action) => {
  const element = make("button", { type: "button", class: name, "aria-keyshortcuts": key }, label, " ", make("kbd", {}, key));
  element.addEventListener("click", action);
  return element;
};
const yes = button("yes", "Yes", "y", () => reply("yes"));
const no = button("no", "No", "n", () => reply("no"));
const unsure = button("", "Not sure", "u", () => reply("unsure"));
const undo = button("", "Undo", "z", () => ask("undo", {}));
const finish = button("", "Finish and write", "f", () => ask("finish", {}));
const fault = make("p", { class: "fault", role: "alert" });
const question = make("div", { "aria-live": "polite" }), progress = make("div"), figure = make("div");

function share(name, value) {
  return make("li", {}, make("b", {}, percent(value.value)), ` ${name} (${percent(value.lower)} to ${percent(value.upper)})`);
}

function update() {
  for (const one of [yes, no, unsure]) one.disabled = busy || !current || !current.question || !!current.finished;
  undo.disabled = busy || !current || !current.can_undo || !!current.finished;
  finish.disabled = busy || !current || !!current.finished;
  if (!current) return;
  question.replaceChildren(current.finished
    ? make("div", {}, make("h2", {}, "Finished"), ...current.finished.map((line) => make("p", {}, line)))
    : current.question
      ? make("div", {}, make("p", { class: "soft" }, `Score ${current.question.pair.score.toFixed(3)}`), columnsOf(current.question.pair))
      : make("p", {}, "Everything is answered."));
  const estimate = current.estimate;
  progress.replaceChildren(make("ul", { class: "counts" },
    make("li", {}, make("b", {}, grouped(current.yes)), " yes"), make("li", {}, make("b", {}, grouped(current.no)), " no"),
    make("li", {}, make("b", {}, grouped(current.unsure)), " not sure"),
    estimate && share("precision", estimate.precision), estimate && share("recall", estimate.recall)),
  make("p", { class: "soft", role: "status" }, current.problem || (current.learning ? "Learning from the answers …"
    : current.rounds ? `Learned ${current.rounds} ${current.rounds === 1 ? "time" : "times"} from the answers.`
      : "After five answers of each kind it is learned from them.")));
  figure.replaceChildren(histogram(current.scores, current.scores.threshold));
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const action = { y: yes, n: no, u: unsure, z: undo, f: finish }[event.key.toLowerCase()];
  if (action && !action.disabled) { event.preventDefault(); action.click(); }
});

page.replaceChildren(
  make("header", {}, make("h1", {}, review.title)),
  make("section", { "aria-labelledby": "question" }, make("h2", { id: "question" }, review.question), LEGEND(), question,
    make("div", { class: "row" }, yes, no, unsure, undo), fault),
  make("section", { "aria-labelledby": "progress" }, make("h2", { id: "progress" }, "So far"), progress, figure,
    make("p", { class: "soft" }, "The intervals hold nine in ten. Each answer is on disk before the next question is shown."),
    make("div", { class: "row" }, finish)));
ask("state").then(() => { document.body.dataset.ready = "true"; });
setInterval(() => { if (current && current.learning && !busy) ask("state"); }, 1500);
