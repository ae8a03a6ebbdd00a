// The turns of a conversation as a list, drawn by what has changed: a long answer costs what it grows by.
//
// Knows nothing of the network, or of the page around the list. A view keeps the identity of whatever has not
// changed, so comparing with what was drawn last is all that is needed.

import { node, setChildren } from "./dom.js";
import { ending, message, note, speaker, toolCard, userBubble } from "./items.js";
import { isAsked } from "./unbroken/unbroken.js";
import { endingWords, isPending } from "./words.js";

export class Transcript {
  #list;
  #actions;
  #drawn = new Map();
  #pending = node("li", "turn pending");
  #unsent;

  /** `actions` are `decide(turnId, callId, decision)` and `send(input, agent)`. */
  constructor(list, actions) {
    this.#list = list;
    this.#actions = actions;
  }

  /** Show the turns, and below them what was sent and is no turn yet. `answered` names calls that a person decided. */
  draw({ turns, unsent, answered }) {
    const roots = turns.map((turn) => this.#turn(turn, answered));
    if (this.#drawn.size > turns.length) this.#forget(turns);
    const pending = isPending({ turns }, unsent) ? unsent : undefined;
    if (pending && pending !== this.#unsent) this.#pending.replaceChildren(speaker("You said"), sent(pending));
    this.#unsent = pending;
    setChildren(this.#list, pending ? [...roots, this.#pending] : roots);
  }

  #forget(turns) {
    const kept = new Set(turns.map((turn) => turn.turn_id));
    for (const id of this.#drawn.keys()) if (!kept.has(id)) this.#drawn.delete(id);
  }

  /** The turn's element, up to date. */
  #turn(turn, answered) {
    const drawn = this.#drawn.get(turn.turn_id) ?? { root: node("li", "turn"), parts: new Map() };
    if (drawn.turn !== turn || drawn.answered !== answered) this.#redraw(drawn, turn, answered);
    return drawn.root;
  }

  #redraw(drawn, turn, answered) {
    const parts = this.#parts(turn, answered).map((part) => {
      const old = drawn.parts.get(part.key);
      const isSame = old && part.looks.every((look, at) => look === old.looks[at]);
      return { ...part, node: isSame ? old.node : part.make(old) };
    });
    setChildren(drawn.root, parts.map((part) => part.node));
    drawn.parts = new Map(parts.map((part) => [part.key, part]));
    this.#drawn.set(turn.turn_id, Object.assign(drawn, { turn, answered }));
  }

  /** What a turn shows, in order: `looks` is all that a part depends on, `make` gets what was drawn of it before. */
  #parts(turn, answered) {
    const words = endingWords(turn);
    const again = () => this.#actions.send(turn.input, turn.agent || undefined);
    return [
      { key: "you", looks: [], make: () => speaker("You said") },
      { key: "input", looks: [turn.input], make: () => userBubble(turn.input ?? []) },
      { key: "agent", looks: [], make: () => speaker("The agent said") },
      ...turn.items.filter(isShown).map((item) => this.#item(turn, item, answered)),
      { key: "end", looks: [words, turn.outcome === "failed"], make: () => ending(turn, words, again) },
    ];
  }

  #item(turn, item, answered) {
    const { key } = item;
    if (item.type === "message") return { key, looks: [item], make: (old) => message(item, old?.node) };
    if (item.type === "notice") return { key, looks: [item], make: () => note(item.error?.user_message ?? "") };
    // A card asks its question only while its turn waits, so it may change without its item.
    const asks = isAsked(turn, item) ? turn.suspended : undefined;
    const done = answered.has(callKey(turn.turn_id, item.call_id));
    const decide = (decision) => this.#actions.decide(turn.turn_id, item.call_id, decision);
    const make = (old) =>
      toolCard({ call: item, asks, answered: done, isNew: asks && !old?.looks[1], decide, made: old?.node });
    return { key, looks: [item, asks, done], make };
  }
}

/** The name of a call among all of a session: its id is only its turn's. */
export function callKey(turnId, callId) {
  return `${turnId} ${callId}`;
}

function sent({ body: { input } }) {
  return userBubble(typeof input === "string" ? [{ text: input }] : input);
}

/** What an agent says in its own words to its own page is no part of this one. */
function isShown(item) {
  return item.type !== "custom";
}
