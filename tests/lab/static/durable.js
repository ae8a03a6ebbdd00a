// The durable column's client: the library, as any page would use it.
//
// Knows nothing of the page. The lab looks on from outside, by how the view's cursor moves; `told` is how it does.

import { open, parseCursor, textOf } from "/static/unbroken/unbroken.js";

const RUN = "log"; // there is one log, whoever writes it
const PINGS_MISSED = 2.5; // as the library's own patience is to the edge's own pings
const STATUS = {
  connecting: "connecting",
  live: "connected",
  waiting: "the connection broke; comes back from",
  offline: "offline",
  stalled: "nothing came, not even a ping; comes back from",
  refused: "refused",
  closed: "closed",
};

export class DurableChat {
  constructor(told, { ping_seconds }) {
    this.told = told;
    this.session = open({ baseUrl: "/durable", stallMs: ping_seconds * 1000 * PINGS_MISSED });
    this.seen = this.session.view;
    this.session.subscribe(() => this.look());
  }

  get id() {
    return this.session.id ?? "";
  }

  async start(prompt) {
    await this.session.send(prompt);
  }

  close() {
    this.session.close();
  }

  /** See what has changed. */
  look() {
    const { seen, session: { view } } = this;
    this.seen = view;
    if (view !== seen) this.compare(seen, view);
    this.told.changed();
  }

  compare(before, after) {
    const [from, to] = [before, after].map(({ cursor }) => parseCursor(cursor).seq);
    // A further attempt says an unsettled message again from its beginning.
    if (attempt(after) > attempt(before)) this.told.withdrawn(unsettledWords(before));
    if (to < from) this.told.rewound(RUN, range(to, from));
    for (const seq of range(from, to)) this.told.shown(RUN, seq);
    if (this.ended && !isEnded(before)) this.told.ended();
  }

  get ended() {
    return isEnded(this.session.view);
  }

  get status() {
    const { view, connection } = this.session;
    if (this.ended) return view.turns[0].outcome === "completed" ? "finished" : view.turns[0].outcome;
    if (connection.state === "live" && view.degraded) return "connected; the store is away";
    const words = STATUS[connection.state];
    return words.endsWith("from") ? `${words} ${view.cursor}` : words;
  }

  get bubbles() {
    return (this.session.view.turns[0]?.items ?? []).map(bubbleOf);
  }
}

function bubbleOf(item) {
  if (item.type === "tool_call") return { kind: "tool", text: item.name, state: item.outcome ?? "runs" };
  return { kind: "text", text: textOf(item) };
}

function attempt(view) {
  return view.turns[0]?.attempt ?? 1;
}

function isEnded(view) {
  return view.turns[0]?.state === "finished";
}

function unsettledWords(view) {
  const texts = (view.turns[0]?.items ?? []).filter(({ status }) => status === "streaming").map(textOf);
  return texts.join(" ").split(" ").filter(Boolean).length;
}

/** The seqs after `from`, up to `to`. */
function range(from, to) {
  return Array.from({ length: Math.max(0, to - from) }, (_, at) => from + 1 + at);
}
