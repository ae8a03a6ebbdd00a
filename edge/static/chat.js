// The chat page: the session that the address names, on the client library, and what a person does with it.
//
// Knows nothing of how events travel (unbroken/), or of how things are worded (words.js) and drawn (view.js).
// What was typed or sent outlives a reload: it is kept by session until the server has it.

import { EMPTY, newKey, open, openTurn } from "./unbroken/unbroken.js";
import { forget, keep, kept } from "./keepsakes.js";
import { callKey } from "./transcript.js";
import { View } from "./view.js";
import { MISSING, isPending, refusalWords } from "./words.js";

const QUIET_MS = 4_000; // pings are not events, so a connection that lives may still say nothing
const BLINK_MS = 800; // most connections are back before a person could have read that they were gone
const SESSION_ID = /^[A-Za-z0-9_-]{16,64}$/;
const WELL = ["live", "connecting"];
const UNCONNECTED = { state: "connecting", attempt: 0 };

class Chat {
  view = new View({
    send: (input, agent) => this.send(input, agent),
    stop: () => this.stop(),
    decide: (turnId, callId, decision) => this.decide(turnId, callId, decision),
    restart: () => this.restart(),
    reconnect: () => (this.session ?? this.opening)?.reconnect(),
    keepDraft: (text) => this.keepDraft(text),
  });

  /** Show the session that the address names, or a fresh one if it names none. */
  async start() {
    // Back and forward change the fragment too, so this is all that the history needs.
    addEventListener("hashchange", () => location.hash.slice(1) === this.session?.id || this.visit());
    await this.visit();
  }

  async visit() {
    this.leave();
    const id = location.hash.slice(1);
    if (id && !SESSION_ID.test(id)) return this.miss(MISSING);
    await this.enter(open({ sessionId: id || undefined }), "replaceState");
  }

  /** Go on in a fresh session; the one at hand stays on the page until there is one. */
  async restart() {
    const isFresh = this.session && !this.session.view.turns.length && !this.unsent;
    if (!isFresh) await this.enter(open(), "pushState");
  }

  /** Go to `session` once it is loaded, in a new entry of the browser's history or in the present one. */
  async enter(session, way) {
    this.stay();
    this.opening = session;
    session.subscribe(() => this.notice(session));
    const failure = await session.ready.then(() => undefined, (error) => error);
    if (session !== this.opening) return; // somebody has gone elsewhere meanwhile
    this.opening = undefined;
    if (failure) return this.refuse(session, failure);
    this.leave();
    if (location.hash.slice(1) !== session.id) history[way](null, "", `#${session.id}`);
    this.session = session;
    this.hear();
    this.restore(session.id);
    this.draw();
  }

  /** Go nowhere else after all. */
  stay() {
    this.opening?.close();
    this.opening = undefined;
  }

  /** Say that `session` could not be loaded. */
  refuse(session, error) {
    session.close();
    if (this.session) return this.view.problem(refusalWords(error));
    this.leave();
    this.miss([404, 410].includes(error.status) ? MISSING : refusalWords(error));
  }

  miss(words) {
    this.missing = words;
    this.draw();
  }

  /** Forget the session at hand; what it still wants to send is sent when somebody comes back to it. */
  leave() {
    if (this.session) this.view.clear();
    this.session?.close();
    this.stay();
    clearTimeout(this.doubt);
    this.session = this.missing = this.unsent = this.stopping = this.doubt = undefined;
    this.connection = UNCONNECTED;
    this.answered = new Set();
    this.draw();
  }

  restore(id) {
    const draft = kept(draftKey(id));
    if (draft) this.view.fill(draft);
    const unsent = JSON.parse(kept(id) ?? "null");
    if (unsent) this.post(unsent);
  }

  /** Take note of what `session` says of itself, unless another one is on the page. */
  notice(session) {
    if (session !== (this.session ?? this.opening)) return;
    const { view, connection } = session;
    if (view.cursor !== this.cursor) this.hear();
    this.cursor = view.cursor;
    if (!isPending(view, this.unsent)) this.unsent = undefined;
    this.weigh(connection);
    this.draw();
  }

  /** Show how the page is connected, but a connection that is lost only when it does not come back at once. */
  weigh(connection) {
    const isBlink = WELL.includes(this.connection.state) && ["connecting", "waiting"].includes(connection.state);
    if (isBlink) {
      this.doubt ??= setTimeout(() => {
        this.doubt = undefined;
        this.connection = (this.session ?? this.opening).connection;
        this.draw();
      }, BLINK_MS);
      return;
    }
    clearTimeout(this.doubt);
    this.doubt = undefined;
    this.connection = connection;
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

  draw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      const { connection, missing, unsent, stopping, quiet, answered } = this;
      const beside = { connection, missing, unsent, stopping, quiet, answered };
      this.view.draw({ view: this.session?.view ?? EMPTY, ready: Boolean(this.session), ...beside });
    });
  }

  /** Send a text, or the parts of an earlier input; kept until it is known to be durable. */
  async send(input, agent) {
    this.stay(); // who speaks here would not want to be elsewhere when an answer comes
    const { id, view } = this.session;
    const unsent = { key: newKey(), body: { input, agent }, after: view.turns.at(-1)?.turn_id };
    keep(id, JSON.stringify(unsent));
    await this.post(unsent);
  }

  async post(unsent) {
    const { id } = this.session;
    const { key, body } = unsent;
    this.unsent = unsent;
    this.hear();
    this.draw();
    const send = (session) => session.send(body.input, { key, agent: body.agent });
    const isAnswered = await this.attempt(send, () => this.giveBack(id, unsent));
    // Unless we left meanwhile: then it may still have to be sent.
    if (isAnswered && JSON.parse(kept(id) ?? "null")?.key === key) forget(id);
  }

  /** Put a refused text back to where it can be changed, before what was typed since. */
  giveBack(id, { body: { input } }) {
    const typed = kept(draftKey(id));
    const draft = [typeof input === "string" && input, typed].filter(Boolean).join("\n");
    keep(draftKey(id), draft);
    this.view.fill(draft);
    this.unsent = undefined;
  }

  keepDraft(text) {
    if (this.session) keep(draftKey(this.session.id), text);
  }

  async stop() {
    const turn = openTurn(this.session.view);
    if (!turn) return;
    this.stopping = turn.turn_id;
    this.draw();
    await this.attempt((session) => session.stop(turn.turn_id), () => (this.stopping = undefined));
  }

  async decide(turnId, callId, decision) {
    const call = callKey(turnId, callId);
    this.answered = new Set([...this.answered, call]);
    this.draw();
    const takeBack = () => (this.answered = new Set([...this.answered].filter((other) => other !== call)));
    await this.attempt((session) => session.decide(turnId, callId, decision), takeBack);
  }

  /**
   * Ask something of the server; where it refuses, undo and say why. False if the session was left meanwhile: then
   * nobody knows.
   */
  async attempt(ask, undo) {
    const { session } = this;
    const failure = await ask(session).then(() => undefined, (error) => error);
    if (session !== this.session) return false;
    if (failure) undo();
    this.view.problem(failure ? refusalWords(failure) : "");
    this.draw();
    return true;
  }
}

function draftKey(sessionId) {
  return `draft:${sessionId}`;
}

new Chat().start();
