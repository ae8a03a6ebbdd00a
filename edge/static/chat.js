// The chat page: a session in the URL, a stream from its snapshot's cursor, and two kinds of calls.
//
// Knows nothing of how a conversation is folded (conversation.js) or drawn (view.js).

import { CONTROL_TYPES, EMPTY, EVENT_TYPES, Gap, fromSnapshot, openTurn, reduce } from "./conversation.js";
import { View } from "./view.js";

const RETRY_MS = { first: 500, most: 10_000 };

class Chat {
  constructor() {
    this.state = EMPTY;
    this.connection = "connecting";
    this.view = new View({
      send: (text) => this.send(text),
      stop: () => this.stop(),
      decide: (turnId, callId, decision) => this.decide(turnId, callId, decision),
      restart: () => this.restart(),
    });
  }

  async start() {
    this.sessionId = location.hash.slice(1);
    if (!/^[A-Za-z0-9_-]{16,64}$/.test(this.sessionId) || !(await this.load())) await this.create();
    this.connect();
    const unsent = JSON.parse(sessionStorage.getItem(this.sessionId) ?? "null");
    if (unsent) await this.post(unsent);
  }

  async create() {
    const answer = await call("POST", "/v1/sessions", {});
    const { session_id, cursor } = await answer.json();
    this.sessionId = session_id;
    this.state = { ...EMPTY, cursor };
    history.replaceState(null, "", `#${session_id}`);
    this.draw();
  }

  /** Load the snapshot; false when the session is no more. */
  async load() {
    const answer = await call("GET", this.path());
    if (!answer.ok) return false;
    this.state = fromSnapshot(await answer.json());
    this.draw();
    return true;
  }

  restart() {
    this.disconnect();
    history.replaceState(null, "", location.pathname);
    this.start();
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
      this.state = reduce(this.state, { type, id: message.lastEventId, data: JSON.parse(message.data) });
    } catch (error) {
      if (!(error instanceof Gap)) throw error;
      this.connect();
    }
    this.delay = undefined;
    this.draw();
  }

  become(connection) {
    this.connection = connection;
    this.draw();
  }

  draw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.view.draw(this.state, this.connection);
    });
  }

  /** Send a message; kept until it is known to be durable, so that a reload sends it again. */
  async send(text) {
    const unsent = { key: crypto.randomUUID(), text };
    sessionStorage.setItem(this.sessionId, JSON.stringify(unsent));
    await this.post(unsent);
  }

  async post({ key, text }) {
    this.view.sending(text);
    const answer = await call("POST", this.path("/turns"), { input: text }, { "Idempotency-Key": key });
    sessionStorage.removeItem(this.sessionId);
    this.view.sent(answer.ok ? "" : text);
    await this.tell(answer);
  }

  async stop() {
    const turn = openTurn(this.state);
    if (turn) await this.tell(await call("POST", this.path(`/turns/${turn.turn_id}/cancel`), {}));
  }

  async decide(turnId, callId, decision) {
    await this.tell(await call("POST", this.path(`/turns/${turnId}/tool-calls/${callId}`), decision));
  }

  async tell(answer) {
    this.view.problem(answer.ok ? "" : (await answer.json()).title);
  }
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

new Chat().start();
