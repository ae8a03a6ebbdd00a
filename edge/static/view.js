// The conversation as a page. Everything that somebody wrote becomes text, never markup.
//
// Knows nothing of the network. Drawing is keyed: an item is drawn again only when it has changed.

import { isAsked, openTurn, textOf } from "./unbroken/unbroken.js";
import { BUSY, CONNECTION, callWords, endingWords, isPending, questionWords, readable, statusWords } from "./words.js";

const NEAR_END_PX = 80;

export class View {
  constructor(actions) {
    this.actions = actions;
    this.drawn = new Map();
    this.transcript = element("transcript");
    this.pending = node("li", "turn pending");
    this.input = element("input");
    element("composer").addEventListener("submit", (event) => this.submit(event));
    element("stop").addEventListener("click", () => this.act(actions.stop));
    element("new").addEventListener("click", () => this.act(actions.restart));
    element("missing").lastElementChild.addEventListener("click", () => this.act(actions.restart));
    element("latest").addEventListener("click", () => this.act(() => this.scroll(true)));
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) this.submit(event);
    });
    this.input.addEventListener("input", () => this.typed());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !element("stop").hidden) actions.stop();
    });
    addEventListener("scroll", () => this.offerLatest(), { passive: true });
    addEventListener("resize", () => this.fit());
    this.fit();
  }

  /** Act, and leave the focus where typing goes on, for what was clicked may vanish. */
  act(action) {
    this.input.focus({ preventScroll: true });
    return action();
  }

  submit(event) {
    event.preventDefault();
    const text = this.input.value.trim();
    if (!text) return;
    if (element("send").disabled) return this.say(this.turn ? BUSY : "");
    this.fill("");
    this.actions.keepDraft("");
    this.send(text);
  }

  send(input, agent) {
    this.follow = true;
    this.actions.send(input, agent);
  }

  typed() {
    this.fit();
    this.say("");
    this.actions.keepDraft(this.input.value);
  }

  fill(text) {
    this.input.value = text;
    this.fit();
  }

  /** Make ready for another session. */
  clear() {
    this.fill("");
    this.problem("");
    this.follow = true;
  }

  fit() {
    const { style, offsetHeight, clientHeight } = this.input;
    style.height = "auto";
    style.height = `${this.input.scrollHeight + offsetHeight - clientHeight}px`;
  }

  /** Say something until the next key or the end of the turn; else the status says what is awaited. */
  say(hint) {
    this.hint = hint;
    setText(element("status"), hint || this.status);
  }

  problem(text) {
    setText(element("problem"), text);
  }

  /** Draw the page: `state` and what is known beside it. */
  draw(page) {
    const pinned = this.follow || this.atEnd();
    this.follow = false;
    this.turn = openTurn(page.state);
    const pending = isPending(page.state, page.unsent) && page.unsent;
    this.drawConnection(page.state.degraded ? "degraded" : page.connection, page.missing);
    this.drawComposer(page, Boolean(pending));
    element("empty").hidden = !page.ready || page.state.turns.length > 0 || Boolean(pending);
    this.transcript.setAttribute("aria-busy", String(this.turn?.state === "running"));
    this.drawTurns(page.state.turns);
    this.drawPending(pending);
    this.scroll(pinned);
  }

  drawConnection(connection, missing = "") {
    const status = element("connection");
    setText(status, CONNECTION[connection]);
    status.dataset.state = connection;
    status.style.visibility = missing ? "hidden" : "visible";
    element("missing").hidden = !missing;
    setText(element("missing").firstElementChild, missing);
  }

  drawComposer({ quiet, stopping, ready }, pending) {
    const turn = this.turn;
    element("stop").hidden = !turn;
    element("send").hidden = Boolean(turn);
    element("send").disabled = Boolean(turn || pending || !ready);
    this.status = statusWords({ turn, pending, quiet, stopping });
    this.say(turn ? this.hint : "");
  }

  drawTurns(turns) {
    const kept = new Set(turns.map((turn) => turn.turn_id));
    for (const [id, { root }] of this.drawn) {
      if (kept.has(id)) continue;
      root.remove();
      this.drawn.delete(id);
    }
    for (const turn of turns) {
      const old = this.drawn.get(turn.turn_id);
      if (old?.turn === turn) continue;
      const root = old?.root ?? this.transcript.appendChild(node("li", "turn"));
      const items = old?.items ?? new Map();
      this.drawTurn(root, turn, items);
      this.drawn.set(turn.turn_id, { turn, root, items });
    }
  }

  /** Draw what was sent and is no turn yet, below all turns. */
  drawPending(unsent) {
    if (!unsent) this.pending.remove();
    else if (this.unsent !== unsent) {
      const { input } = unsent.body;
      const parts = typeof input === "string" ? [{ text: input }] : input;
      this.pending.replaceChildren(userBubble(parts));
    }
    this.unsent = unsent;
    if (unsent && this.transcript.lastChild !== this.pending) this.transcript.append(this.pending);
  }

  drawTurn(root, turn, items) {
    const words = endingWords(turn);
    const parts = [
      { key: "input", item: turn.input, make: () => userBubble(turn.input ?? []) },
      ...turn.items.filter(isShown).map((item) => this.part(turn, item)),
      { key: "end", item: `${turn.outcome} ${words}`, make: () => this.ending(turn, words) },
    ];
    const nodes = parts.map(({ key, item, asks, make }) => {
      const old = items.get(key);
      // A card asks its question only while its turn waits, so it may change without its item.
      const same = old && old.item === item && old.asks === asks;
      if (!same) items.set(key, { item, asks, node: make(old?.node, old?.asks) });
      return items.get(key).node;
    });
    if (nodes.some((child, i) => child !== root.childNodes[i]) || nodes.length !== root.childNodes.length) {
      root.replaceChildren(...nodes);
    }
  }

  part(turn, item) {
    const { key } = item;
    if (item.type === "message") return { key, item, make: (old) => bubble(item, old) };
    if (item.type !== "tool_call") return { key, item, make: () => note(item.error?.user_message ?? "") };
    const asks = isAsked(turn, item) ? turn.suspended : undefined;
    return { key, item, asks, make: (card, asked) => this.toolCard({ turn, call: item, asks, asked, card }) };
  }

  /** A tool call's card, in the element it had before, so that it stays open and focused. */
  toolCard({ turn, call, asks, asked, card = node("div", "card", [node("details", "", [node("summary")])]) }) {
    const details = card.firstChild;
    const head = details.firstChild;
    details.className = call.outcome ?? (asks ? "waiting" : "running");
    head.replaceChildren(node("strong", "", [call.name ?? "tool"]), ` ${callWords(call, asks)}`);
    replaceAfter(head, [
      field("Arguments", readable(call.arguments_json)),
      field("Result", readable(call.result_json)),
      field("Error", call.error?.user_message),
    ]);
    // What is to be approved must be seen.
    if (asks && !asked) details.open = true;
    const progress = call.outcome ? undefined : call.progress;
    replaceAfter(details, [...(progress ? [progressLine(progress)] : []), ...(asks ? [this.question(turn, call)] : [])]);
    return card;
  }

  question(turn, call) {
    const decide = (decision) => this.act(() => this.actions.decide(turn.turn_id, call.call_id, decision));
    const words = questionWords(turn, call);
    const prompt = node("p", "", [words]);
    if (call.executor !== "client") {
      const yes = button("Approve", () => decide({ approve: true }));
      return node("div", "question", [prompt, yes, button("Deny", () => decide({ approve: false }))]);
    }
    const answer = node("input", "");
    answer.setAttribute("aria-label", words);
    const form = node("form", "question", [prompt, answer, node("button", "", ["Answer"])]);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      decide({ result: answer.value });
    });
    return form;
  }

  ending(turn, words) {
    const end = note(words);
    if (turn.outcome !== "failed") return end;
    end.classList.add("bad");
    if (turn.input) end.append(button("Try again", () => this.act(() => this.send(turn.input, turn.agent || undefined))));
    return end;
  }

  atEnd() {
    return innerHeight + scrollY >= document.documentElement.scrollHeight - NEAR_END_PX;
  }

  scroll(pinned) {
    if (pinned) scrollTo({ top: document.documentElement.scrollHeight });
    this.offerLatest();
  }

  offerLatest() {
    element("latest").hidden = this.atEnd();
  }
}

function userBubble(parts) {
  return node("div", "bubble user", [parts.map((part) => part.text ?? part.uri ?? part.data_json).join("\n")]);
}

/** A message's bubble, in the element it had before, so that a selection in it survives. */
function bubble(item, element = node("div")) {
  element.className = `bubble agent ${item.status}`;
  const text = textOf(item);
  const known = element.firstChild;
  // Appending costs the same however long the answer is, and leaves a selection alone.
  if (known && text.startsWith(known.data)) known.appendData(text.slice(known.length));
  else element.textContent = text;
  return element;
}

function note(text) {
  const element = node("p", "note", [text]);
  element.hidden = !text;
  return element;
}

function field(name, value) {
  const element = node("div", "field", [node("span", "", [name]), node("pre", "", [value ?? ""])]);
  element.hidden = !value;
  return element;
}

/** What an agent says in its own words to its own page is no part of this one. */
function isShown(item) {
  return item.type !== "custom";
}

function progressLine({ message, fraction }) {
  if (fraction === undefined) return node("p", "progress", [message]);
  const bar = node("progress");
  bar.value = fraction;
  bar.setAttribute("aria-label", "Progress");
  const percent = `${Math.round(fraction * 100)} %`;
  return node("p", "progress", [[message, percent].filter(Boolean).join(" · "), bar]);
}

function button(text, action) {
  const element = node("button", "", [text]);
  element.type = "button";
  element.addEventListener("click", action);
  return element;
}

function node(tag, className, children = []) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

function replaceAfter(kept, nodes) {
  while (kept.nextSibling) kept.nextSibling.remove();
  kept.after(...nodes);
}

/** Set a text only when it is another, for a live region reads out whatever is set. */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function element(id) {
  return document.getElementById(id);
}
