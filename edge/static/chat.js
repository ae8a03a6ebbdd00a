// The chat page: a session in the URL, a stream from its snapshot's cursor, and two kinds of calls.
//
// Knows nothing of how a conversation is folded (unbroken/), worded (words.js) or drawn (view.js).
// What was typed or sent outlives a reload: sessionStorage holds it by session until the server has it.

import { CONTROL_TYPES, EMPTY, EVENT_TYPES, Gap, fold, fromSnapshot, openTurn } from "./unbroken/unbroken.js";
import { View } from "./view.js";
import { MISSING, isPending } from "./words.js";

const RETRY_MS = { first: 500, most: 10_000 };
const QUIET_MS = 4_000; // the stream's pings are not shown to scripts, so silence is told by events
const SESSION_ID = /^[A-Za-z0-9_-]{16,64}$/;

class Chat {
  constructor() {
    this.state = EMPTY;
    this.connection = "connecting";
    this.visits = 0;
    this.view = new View({
      send: (input, agent) => this.send(input, agent),
      stop: () => this.stop(),
      decide: (turnId, callId, decision) => this.decide(turnId, callId, decision),
      restart: () => this.restart(),
      keepDraft: (text) => this.keepDraft(text),
    });
    // Back and forward change the fragment too, so this is all that the history needs.
    addEventListener("hashchange", () => location.hash.slice(1) === this.sessionId || this.open());
  }

  /** Open the session that the address names, or a fresh one if it names none. */
  async open() {
    const visit = this.leave();
    const id = location.hash.slice(1);
    if (!id) return this.create("replaceState");
    const answer = SESSION_ID.test(id) && (await call("GET", `/v1/sessions/${id}`));
    const body = answer && (await answer.json());
    if (visit !== this.visits) return;
    if (answer.ok) return this.enter(id, fromSnapshot(body));
    this.missing = !answer || [404, 410].includes(answer.status) ? MISSING : body.title;
    this.draw();
  }

  /** Open a fresh session, as the present entry of the history or as the next. */
  async create(way) {
    const visit = ++this.visits;
    const answer = await call("POST", "/v1/sessions", {});
    if (!answer.ok) return this.tell(answer);
    const { session_id, cursor } = await answer.json();
    if (visit !== this.visits) return;
    this.leave();
    history[way](null, "", `#${session_id}`);
    this.enter(session_id, { ...EMPTY, cursor });
  }

  restart() {
    const fresh = this.sessionId && !this.state.turns.length && !this.unsent;
    if (!fresh) this.create("pushState");
  }

  enter(id, state) {
    this.sessionId = id;
    this.state = state;
    this.connect();
    this.hear();
    const draft = sessionStorage.getItem(draftKey(id));
    if (draft) this.view.fill(draft);
    const unsent = JSON.parse(sessionStorage.getItem(id) ?? "null");
    if (unsent) this.post(unsent);
    this.draw();
  }

  /** Forget the session at hand; its number tells an answer that comes too late. */
  leave() {
    this.disconnect();
    if (this.sessionId) this.view.clear();
    this.sessionId = this.missing = this.unsent = this.stopping = undefined;
    this.state = EMPTY;
    this.become("connecting");
    return ++this.visits;
  }

  path(rest = "") {
    return `/v1/sessions/${this.sessionId}${rest}`;
  }

  // The browser reconnects by itself and sends its last id as a header, which wins over the query. Only
  // when it has given up, as it does on any status but 200, must a new EventSource be made.
  connect() {
    this.disconnect();
    const source = new EventSource(this.path(`/events?until=follow&last_event_id=${this.state.cursor}`));
    this.source = source;
    source.onopen = () => this.become("connected");
    for (const type of [...EVENT_TYPES, ...CONTROL_TYPES]) {
      // The browser's own "error" carries no data; the server's event of that name does.
      source.addEventListener(type, (message) => {
        if (source === this.source && "data" in message) this.take(type, message);
      });
    }
    source.addEventListener("error", (event) => {
      if (source !== this.source || "data" in event) return;
      this.become("reconnecting");
      if (source.readyState === EventSource.CLOSED) this.connectLater();
    });
  }

  connectLater() {
    this.delay = Math.min((this.delay ?? RETRY_MS.first / 2) * 2, RETRY_MS.most);
    this.timer = setTimeout(() => this.connect(), this.delay * (0.5 + Math.random() / 2));
  }

  disconnect() {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = undefined;
  }

  take(type, message) {
    try {
      this.state = fold(this.state, { type, id: message.lastEventId, data: JSON.parse(message.data) });
    } catch (error) {
      if (!(error instanceof Gap)) throw error;
      this.connect();
    }
    if (EVENT_TYPES.includes(type)) this.hear();
    if (!isPending(this.state, this.unsent)) this.unsent = undefined;
    this.delay = undefined;
    this.draw();
  }

  /** Take note that something came; silence from here on is worth a word after a while. */
  hear() {
    this.quiet = false;
    clearTimeout(this.silence);
    this.silence = setTimeout(() => {
      this.quiet = true;
      this.draw();
    }, QUIET_MS);
  }

  become(connection) {
    this.connection = connection;
    this.draw();
  }

  draw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.view.draw({ ...this, ready: Boolean(this.sessionId) });
    });
  }

  /** Send a text, or the parts of an earlier input; kept until it is known to be durable. */
  async send(input, agent) {
    const after = this.state.turns.at(-1)?.turn_id;
    const unsent = { key: crypto.randomUUID(), body: { input, agent }, after };
    sessionStorage.setItem(this.sessionId, JSON.stringify(unsent));
    await this.post(unsent);
  }

  async post(unsent) {
    const id = this.sessionId;
    this.unsent = unsent;
    this.hear();
    this.draw();
    const answer = await call("POST", this.path("/turns"), unsent.body, { "Idempotency-Key": unsent.key });
    if (JSON.parse(sessionStorage.getItem(id))?.key === unsent.key) sessionStorage.removeItem(id);
    if (!answer.ok) this.giveBack(id, unsent);
    if (id === this.sessionId) await this.tell(answer);
  }

  /** Put a refused text back to where it can be changed, before what was typed since. */
  giveBack(id, { key, body: { input } }) {
    const typed = sessionStorage.getItem(draftKey(id));
    const draft = [typeof input === "string" && input, typed].filter(Boolean).join("\n");
    sessionStorage.setItem(draftKey(id), draft);
    if (id === this.sessionId) this.view.fill(draft);
    if (this.unsent?.key === key) this.unsent = undefined;
    this.draw();
  }

  keepDraft(text) {
    if (this.sessionId) sessionStorage.setItem(draftKey(this.sessionId), text);
  }

  async stop() {
    const turn = openTurn(this.state);
    if (!turn) return;
    this.stopping = turn.turn_id;
    this.draw();
    const answer = await call("POST", this.path(`/turns/${turn.turn_id}/cancel`), {});
    if (!answer.ok) this.stopping = undefined;
    await this.tell(answer);
  }

  async decide(turnId, callId, decision) {
    await this.tell(await call("POST", this.path(`/turns/${turnId}/tool-calls/${callId}`), decision));
  }

  async tell(answer) {
    this.view.problem(answer.ok ? "" : (await answer.json()).title);
    this.draw();
  }
}

function draftKey(sessionId) {
  return `draft:${sessionId}`;
}

/** Call the API until it answers; every call here may be repeated without harm. */
async function call(method, path, body, headers = {}) {
  const json = body && { body: JSON.stringify(body), headers: { "Content-Type": "application/json", ...headers } };
  for (let delay = RETRY_MS.first; ; delay = Math.min(delay * 2, RETRY_MS.most)) {
    const answer = await fetch(path, { method, ...json }).catch(() => undefined);
    if (answer && answer.status < 500) return answer;
    await new Promise((resolve) => setTimeout(resolve, delay * (0.5 + Math.random() / 2)));
  }
}

new Chat().open();
