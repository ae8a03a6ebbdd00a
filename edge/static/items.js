// What a turn is made of, as elements: words, reasoning, tool cards, questions, notices, an ending.
//
// Knows nothing of the network, or of when something is drawn again. An element that is given is changed and kept,
// so that it stays open, focused and selected.

import { button, growText, node, setChildren, setText } from "./dom.js";
import { textOf } from "./unbroken/unbroken.js";
import { answerOf, callWords, choicesOf, durationWords, questionWords, readable, thoughtWords } from "./words.js";

/** A heading for those who do not see whose words follow. */
export function speaker(words) {
  return node("h2", "unseen", [words]);
}

/** What the person said. */
export function userBubble(parts) {
  const words = parts.map((part) => part.text ?? part.uri ?? part.data_json).join("\n");
  return node("div", "bubble user", [words]);
}

/** What the agent said, below how it came to it. */
export function message(item, made = node("div", "message", [thought(), node("div")])) {
  const [reasoning, bubble] = made.children;
  const text = textOf(item);
  const thinks = item.status === "streaming" && !text;
  reasoning.hidden = !item.reasoning;
  reasoning.classList.toggle("thinks", thinks);
  growText(reasoning.firstChild, thoughtWords(thinks));
  growText(reasoning.lastChild, item.reasoning ?? "");
  bubble.className = `bubble agent ${item.status}`;
  bubble.hidden = !text && Boolean(item.reasoning);
  growText(bubble, text);
  return made;
}

function thought() {
  return node("details", "thought", [node("summary"), node("div")]);
}

/** A tool call; `asks` is what its turn waits for, if for this call, `answered` whether a person has spoken. */
export function toolCard({ call, asks, answered, isNew, decide, made = node("div", "card", [details()]) }) {
  const fold = made.firstChild;
  const [head, ...fields] = fold.children;
  const heads = [call.name ?? "tool", callWords(call, asks), durationWords(call.duration_ms)];
  heads.forEach((words, at) => setText(head.children[at], words));
  fold.className = call.outcome ?? (asks ? "waiting" : "running");
  const values = [readable(call.arguments_json), readable(call.result_json), call.error?.user_message];
  fields.forEach((field, at) => fill(field, values[at] ?? ""));
  if (isNew) fold.open = true; // what is to be approved must be seen
  setChildren(made, [fold, ...below({ call, asks, answered, decide })]);
  return made;
}

function details() {
  const heads = [node("strong"), node("span", "standing"), node("span", "duration")];
  return node("details", "", [node("summary", "", heads), ...["Arguments", "Result", "Error"].map(field)]);
}

function field(name) {
  return node("div", "field", [node("span", "", [name]), node("pre")]);
}

function fill(field, value) {
  field.hidden = !value;
  growText(field.lastChild, value);
}

/** What stays in sight of a card that is folded. */
function below({ call, asks, answered, decide }) {
  if (asks && answered) return [node("p", "progress", ["Answered. The agent goes on…"])];
  if (asks) return [question({ call, asks, decide })];
  return call.progress && !call.outcome ? [progressLine(call.progress)] : [];
}

function progressLine({ message, fraction }) {
  if (fraction === undefined) return node("p", "progress", [message]);
  const bar = node("progress");
  bar.value = fraction;
  bar.setAttribute("aria-label", "Progress");
  const percent = `${Math.round(fraction * 100)} %`;
  return node("p", "progress", [[message, percent].filter(Boolean).join(" · "), bar]);
}

function question({ call, asks, decide }) {
  const words = questionWords(asks, call);
  const prompt = node("p", "", [words]);
  if (call.executor !== "client") {
    const yes = button("Approve", () => decide({ approve: true }), "strong");
    return group(words, [prompt, yes, button("Deny", () => decide({ approve: false }))]);
  }
  const choices = choicesOf(asks);
  if (!choices) return answerForm(words, prompt, (text) => decide({ result: answerOf(asks, text) }));
  return group(words, [prompt, ...choices.map((choice) => button(String(choice), () => decide({ result: choice })))]);
}

function group(words, children) {
  const made = node("div", "question", children);
  made.setAttribute("role", "group");
  made.setAttribute("aria-label", words);
  return made;
}

function answerForm(words, prompt, answer) {
  const input = node("input");
  input.setAttribute("aria-label", words);
  const form = node("form", "question", [prompt, input, node("button", "strong", ["Answer"])]);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    answer(input.value);
  });
  return form;
}

/** A line of its own, such as a notice. */
export function note(words, children = []) {
  const made = node("p", "note", [words, ...children]);
  made.hidden = !words;
  return made;
}

/** How a turn ended, with a way to try again where it failed. */
export function ending(turn, words, retry) {
  if (turn.outcome !== "failed") return note(words);
  const made = note(words, turn.input ? [button("Try again", retry)] : []);
  made.classList.add("bad");
  return made;
}
