// A session as a page holds it: its view, how it is connected, and what a person may do.
//
// Knows nothing of bytes or waiting. The view is read once as a snapshot, and follows the stream of this tab, or of
// the tab that leads, from the first subscriber on. Iterating opens a stream of its own, which waits for its reader.

import { Api } from "./api.js";
import { Gap, isBefore } from "./cursor.js";
import { hostEnvironment, withWanted } from "./environment.js";
import { ProblemError } from "./problems.js";
import { Stream } from "./stream.js";
import { Tabs } from "./tabs.js";
import { EMPTY, TERMINAL_TYPES, fold, fromSnapshot, openTurn, pack, unpack } from "./view.js";
import { pause } from "./waiting.js";

/** Open a session, or a new one. Its options are described in unbroken.d.ts. */
export function open(options = {}) {
  return new Session(options);
}

class Session {
  #api;
  #environment;
  #options;
  #view = EMPTY;
  #connection = Object.freeze({ state: "connecting", attempt: 0, leader: false });
  #position;
  #listeners = new Set();
  #closing = new AbortController();
  #following;
  #stream;
  #tabs;
  #want;

  constructor({ sessionId, fetch, environment, share = true, stallMs, ...server }) {
    const host = { ...hostEnvironment(), ...(fetch && { fetch }), ...environment };
    [this.#environment, this.#want] = withWanted(host);
    this.#api = new Api({ ...server, environment: this.#environment });
    this.#options = { baseUrl: server.baseUrl ?? "", share, stallMs };
    this.id = sessionId;
    this.#begin();
  }

  get view() {
    return this.#view;
  }

  get connection() {
    return this.#connection;
  }

  /** How far iteration has come: what was taken in up to here. */
  get cursor() {
    return this.#position;
  }

  /** Call `listener` after every change of `view` or `connection`; returns what ends that. Needs no `this`. */
  subscribe = (listener) => {
    this.#listeners.add(listener);
    this.#awaitLoad();
    return () => void this.#listeners.delete(listener);
  };

  [Symbol.asyncIterator]() {
    return this.events();
  }

  /**
   * Every event after `after`, once and in order, and what the connection is told. An event counts as taken in when
   * the next one is asked for: a loop that fails amid one gets it again.
   */
  async *events({ after, until = "follow", turnId } = {}) {
    await this.ready;
    let position = after ?? this.#position; // its own: another loop may be elsewhere
    const stream = this.#streamFrom(() => position, { until, signal: this.#closing.signal });
    for await (const events of stream) {
      for (const event of events) {
        yield event;
        this.#position = position = event.id;
        if (TERMINAL_TYPES.includes(event.type) && event.data.turn_id === turnId) return;
      }
    }
  }

  /** Start a turn. However often it must be sent, it is the same turn: the key stays. */
  async send(input, { key = this.#environment.newKey(), agent, onDisconnect, pacing } = {}) {
    const body = { input, agent, on_disconnect: onDisconnect, pacing };
    const answer = await this.#post("/turns", body, { "Idempotency-Key": key });
    const replayed = answer.headers.get("Idempotency-Replayed") === "true";
    return { turnId: answer.body.turn_id, cursor: answer.body.cursor, replayed };
  }

  /** Stop a turn; without an id, the one that `view` shows as open, if any. */
  async stop(turnId = openTurn(this.#view)?.turn_id) {
    if (turnId === undefined) return { state: "done" };
    return (await this.#post(`/turns/${turnId}/cancel`, {})).body;
  }

  /** Answer a call that waits: `{ approve }`, `{ result }` or `{ error }`. */
  async decide(turnId, callId, decision) {
    return (await this.#post(`/turns/${turnId}/tool-calls/${callId}`, decision)).body;
  }

  /** Connect anew, now: after signing in again, or because a person asks. */
  reconnect() {
    if (this.#isUnloaded && this.#connection.state === "refused") this.#begin();
    else this.#want();
  }

  /** Give everything back. What was sent goes on without us. */
  close() {
    this.#closing.abort(new Error("the session was closed"));
    this.#report({ state: "closed", attempt: 0 });
    this.#listeners.clear();
  }

  // --- loading ---------------------------------------------------------------------------------

  #begin() {
    this.#following = undefined;
    this.ready = this.#load();
    this.ready.catch((error) => this.#report({ state: "refused", attempt: 0, error }));
    if (this.#listeners.size > 0) this.#awaitLoad();
  }

  async #load() {
    const call = { signal: this.#closing.signal, report: (connection) => this.#report(connection) };
    if (this.id === undefined) {
      this.id = (await this.#api.call("POST", "/v1/sessions", { ...call, body: {} })).body.session_id;
    } else {
      this.#show(fromSnapshot((await this.#api.call("GET", this.#path(), call)).body));
    }
    this.#position = this.#view.cursor;
  }

  get #isUnloaded() {
    return this.#position === undefined;
  }

  /** Follow once the session is loaded; a load that was refused may be begun again. */
  #awaitLoad() {
    this.#following ??= this.ready.then(() => this.#follow(), () => {});
  }

  async #post(path, body, headers) {
    await this.ready;
    return this.#api.call("POST", this.#path(path), { body, headers, signal: this.#closing.signal });
  }

  #path(rest = "") {
    return `/v1/sessions/${this.id}${rest}`;
  }

  // --- following -------------------------------------------------------------------------------

  #follow() {
    const { share, baseUrl } = this.#options;
    const signal = this.#closing.signal;
    const lead = (reign) => this.#lead(reign);
    if (!share || !this.#environment.tabs) return lead(signal);
    this.#tabs = new Tabs({
      name: `unbroken ${baseUrl} ${this.id}`,
      lead,
      hear: (message) => this.#hear(message),
      answer: (question) => this.#answer(question),
      question: () => ({ cursor: this.#view.cursor }),
      signal,
      environment: this.#environment,
    });
    this.#tabs.start();
  }

  #streamFrom(cursor, rest) {
    const { stallMs } = this.#options;
    const path = this.#path("/events");
    return new Stream({ api: this.#api, path, cursor, stallMs, environment: this.#environment, ...rest });
  }

  /** Hold the stream until `signal` aborts; a refusal stands until somebody wants to try again. */
  async #lead(signal) {
    const report = (connection) => this.#report(connection);
    while (!signal.aborted) {
      this.#stream = this.#streamFrom(() => this.#view.cursor, { report, signal });
      try {
        for await (const events of this.#stream) this.#take(events);
      } catch (error) {
        report({ state: "refused", attempt: 0, error });
        await pause(Infinity, this.#environment, signal, ["wanted"]);
      }
    }
    this.#stream = undefined;
  }

  #take(events) {
    if (this.#foldIn(events)) {
      this.#tabs?.say({ events });
    } else {
      this.#show(EMPTY); // what we have is no part of this log: read it all
      this.#stream.distrust();
    }
  }

  /** Show what `events` make of the view; false, and nothing is shown, where something is missing. */
  #foldIn(events) {
    try {
      this.#show(events.reduce((view, event) => fold(view, event), this.#view));
      return true;
    } catch (error) {
      if (!(error instanceof Gap)) throw error;
      return false;
    }
  }

  #show(view) {
    if (view === this.#view) return;
    this.#view = view;
    this.#notify();
  }

  #report(connection) {
    if (this.#closing.signal.aborted && connection.state !== "closed") return;
    this.#tabs?.say({ connection: packConnection(connection) });
    this.#become({ ...connection, leader: this.#tabs?.leads ?? this.#stream !== undefined });
  }

  #become(connection) {
    this.#connection = Object.freeze(connection);
    // A new connection tells it again if saving is still delayed.
    if (connection.state === "live") this.#view = fold(this.#view, { type: "status", data: { state: "ok" } });
    this.#notify();
  }

  #notify() {
    for (const listener of this.#listeners) {
      try {
        listener();
      } catch (error) {
        this.#environment.raise(error); // the page's own failure, and no reason to end its stream
      }
    }
  }

  // --- other tabs ------------------------------------------------------------------------------

  #answer({ cursor, again }) {
    if (again) this.reconnect();
    const whole = isBefore(cursor, this.#view.cursor) ? pack(this.#view) : undefined;
    return { whole, connection: packConnection(this.#connection) };
  }

  #hear({ events, whole, connection }) {
    if (connection) this.#become({ ...unpackConnection(connection), leader: false });
    if (whole && isBefore(this.#view.cursor, whole.cursor)) this.#show(unpack(whole));
    if (events && !this.#foldIn(events)) this.#tabs.ask();
  }
}

/** A connection as plain data; of an error that is not the server's, only its words can be. */
function packConnection({ state, attempt, retryAt, error }) {
  const told = error instanceof ProblemError && { ...error };
  return { state, attempt, retryAt, error: error && { ...told, title: error.message } };
}

function unpackConnection({ error, ...rest }) {
  if (!error) return rest;
  return { ...rest, error: error.status ? new ProblemError(error) : new Error(error.title) };
}
