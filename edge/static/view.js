// The conversation as a page. Everything that somebody wrote becomes text, never markup.
//
// Knows nothing of the network. Drawing is keyed: an item is drawn again only when it has changed.

import { openTurn, textOf } from "./conversation.js";

const CONNECTION = {
  connecting: "Connecting…",
  connected: "Connected",
  reconnecting: "Connection lost. Coming back…",
};
const OUTCOME = {
  succeeded: "done",
  failed: "failed",
  unknown: "outcome unknown: nobody knows whether it acted",
  not_executed: "not run",
};
const ENDING = {
  cancelled: "Stopped.",
  limit: "Stopped at a limit.",
  failed: "This answer failed.",
};

export class View {
  constructor(actions) {
    this.actions = actions;
    this.drawn = new Map();
    this.transcript = element("transcript");
    this.input = element("input");
    element("composer").addEventListener("submit", (event) => this.submit(event));
    element("stop").addEventListener("click", () => actions.stop());
    element("new").addEventListener("click", () => actions.restart());
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) this.submit(event);
    });
    this.input.addEventListener("input", () => this.fit());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !element("stop").hidden) actions.stop();
    });
  }

  submit(event) {
    event.preventDefault();
    const text = this.input.value.trim();
    if (!text || element("send").disabled) return;
    this.input.value = "";
    this.fit();
    this.actions.send(text);
  }

  fit() {
    this.input.style.height = "auto";
    this.input.style.height = `${this.input.scrollHeight}px`;
  }

  sending(text) {
    this.busy = true;
    this.pending = node("li", "turn pending", [node("div", "bubble user", [text])]);
    element("empty").hidden = true;
    this.transcript.append(this.pending);
    this.scroll(true);
  }

  /** The call was answered; a refused text goes back to where it can be changed. */
  sent(refused) {
    this.busy = false;
    this.pending?.remove();
    if (refused) this.input.value = refused;
    this.fit();
  }

  problem(text) {
    element("problem").textContent = text;
  }

  draw(state, connection) {
    const pinned = innerHeight + scrollY >= document.documentElement.scrollHeight - 80;
    const open = openTurn(state);
    const status = element("connection");
    const words = state.degraded ? "Connected, saving is delayed" : CONNECTION[connection];
    if (status.textContent !== words) status.textContent = words;
    status.dataset.state = state.degraded ? "reconnecting" : connection;
    element("stop").hidden = !open;
    element("send").hidden = Boolean(open);
    element("send").disabled = Boolean(open || this.busy);
    element("empty").hidden = state.turns.length > 0 || Boolean(this.busy);
    this.transcript.setAttribute("aria-busy", String(open?.state === "running"));
    this.drawTurns(state.turns);
    this.scroll(pinned);
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
    if (this.pending?.isConnected) this.transcript.append(this.pending);
  }

  drawTurn(root, turn, items) {
    const parts = [
      ["input", () => userBubble(turn.input ?? [])],
      ...turn.items.map((item) => [item.key, () => this.item(turn, item, items.get(item.key)), item]),
      ["end", () => note(ending(turn))],
    ];
    const nodes = parts.map(([key, make, item]) => {
      const old = items.get(key);
      // A card asks its question only while its turn waits, so it may change without its item.
      const same = old && item && old.item === item && !turn.suspended && !old.asks;
      if (!same) items.set(key, { item, node: make(), asks: Boolean(turn.suspended) });
      return items.get(key).node;
    });
    if (nodes.some((child, i) => child !== root.childNodes[i]) || nodes.length !== root.childNodes.length) {
      root.replaceChildren(...nodes);
    }
  }

  item(turn, item, old) {
    if (item.type === "message") return bubble(item, old?.node);
    if (item.type === "tool_call") return this.toolCard(turn, item, old?.node.querySelector("details").open);
    return note(item.error?.user_message ?? "");
  }

  toolCard(turn, call, isOpen = false) {
    const waits = turn.suspended?.pending_call_ids?.includes(call.call_id) && !call.outcome;
    const state = call.outcome ? OUTCOME[call.outcome] : waits ? "waits for you" : "running";
    const head = node("summary", "", [node("strong", "", [call.name ?? "tool"]), ` ${state}`]);
    const details = node("details", `tool ${call.outcome ?? (waits ? "waiting" : "running")}`, [head]);
    details.open = isOpen;
    details.append(field("Arguments", call.arguments_json), field("Result", call.result_json));
    details.append(field("Error", call.error && (call.error.user_message ?? call.error.reason)));
    const progress = call.outcome ? undefined : call.progress;
    const card = node("div", "card", [details]);
    if (progress) card.append(node("p", "progress", [progressText(progress)]));
    if (waits) card.append(this.question(turn, call));
    return card;
  }

  question(turn, call) {
    const decide = (decision) => this.actions.decide(turn.turn_id, call.call_id, decision);
    const prompt = node("p", "", [turn.suspended.prompt || `May “${call.name}” run?`]);
    if (call.executor !== "client") {
      const yes = button("Approve", () => decide({ approve: true }));
      return node("div", "question", [prompt, yes, button("Deny", () => decide({ approve: false }))]);
    }
    const answer = node("input", "");
    answer.setAttribute("aria-label", turn.suspended.prompt || "Your answer");
    const form = node("form", "question", [prompt, answer, node("button", "", ["Answer"])]);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      decide({ result: answer.value });
    });
    return form;
  }

  scroll(pinned) {
    if (pinned) scrollTo({ top: document.documentElement.scrollHeight });
  }
}

function ending(turn) {
  if (turn.state === "cancelling") return "Stopping…";
  if (turn.state !== "finished" || turn.outcome === "completed") return "";
  return turn.user_message ?? ENDING[turn.outcome] ?? "";
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

function progressText({ message, fraction }) {
  return fraction === undefined ? message : `${message} ${Math.round(fraction * 100)} %`;
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

function element(id) {
  return document.getElementById(id);
}
