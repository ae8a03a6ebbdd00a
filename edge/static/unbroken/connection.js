// One connection to a session's stream: opened, read, and ended in one of a few named ways.
//
// Knows nothing of the next one. What it hands on is in order and whole; whatever arrives after it was cut is lost
// with it, so a stale connection cannot speak.

import { isNext, parseCursor } from "./cursor.js";
import { problemOf } from "./problems.js";
import { Parser } from "./sse.js";
import { CONTROL_TYPES, TERMINAL_TYPES } from "./view.js";

const MOVING = ["rewind", "reset"];

/**
 * Why a connection ended before everything was said. `reason`: "ended" (a clean end proves nothing),
 * "told" (by the server), "stalled", "offline", "left" (the page was), "again" (by us), "foreign" (somebody else
 * answered), "unfit" (what came did not fit), "closed".
 */
export class Cut extends Error {
  name = "Cut";

  constructor(reason, toldMs) {
    super(reason);
    this.reason = reason;
    this.toldMs = toldMs;
  }
}

export class Connection {
  #parts;
  #parser;
  #at;
  #token;
  #caughtUp = false;
  #settled = false;
  #gate = new AbortController();
  #giveUp = () => {};
  #waitsSince = Infinity;

  /** `stallMs` bounds every wait for a byte, so also for the headers; a ping is a byte like any other. */
  constructor({ api, path, cursor, until, stallMs, environment }) {
    this.#parts = { api, path, cursor, until, stallMs, environment };
    this.#parser = new Parser(cursor);
    this.#at = cursor;
  }

  /** End it now. Only the first reason counts. */
  cut(reason) {
    const cut = new Cut(reason);
    this.#gate.abort(cut);
    this.#giveUp(cut);
  }

  /** End it if its time was up long ago: timers sleep with the device. */
  doubt() {
    const { environment, stallMs } = this.#parts;
    if (environment.now() - this.#waitsSince >= stallMs) this.cut("again");
  }

  /**
   * Yield what came together, as lists of events; return when nothing is left to say.
   *
   * Throws `Cut`, `ProblemError`, `Gap`, or what `fetch` rejects with.
   */
  async *batches(onOpen) {
    try {
      const response = await this.#within(this.#request());
      this.#token = this.#parts.api.token;
      await this.#check(response);
      if (response.status === 204) return;
      onOpen();
      yield* this.#read(response.body.getReader());
    } finally {
      this.cut("closed");
    }
    if (this.#parts.until !== "turn_end" || !this.#settled) throw new Cut("ended");
  }

  #request() {
    const { api, path, cursor, until } = this.#parts;
    const headers = { Accept: "text/event-stream", "Last-Event-ID": cursor };
    return api.request(`${path}?until=${until}`, { headers, signal: this.#gate.signal });
  }

  async #check(response) {
    const { environment, until } = this.#parts;
    if (!response.ok) throw await this.#within(problemOf(response, environment.now()));
    const isOver = response.status === 204 && until === "turn_end";
    const isStream = response.headers.get("Content-Type")?.startsWith("text/event-stream");
    if (!isOver && !isStream) throw new Cut("foreign"); // a hotel's login page
  }

  async *#read(reader) {
    for (;;) {
      const { done, value } = await this.#within(reader.read());
      if (done) return;
      const events = [];
      try {
        for (const block of this.#parser.push(value)) this.#take(block, events);
      } finally {
        if (events.length) yield events;
      }
    }
  }

  #take({ type, id, data, retryMs }, events) {
    const isControl = CONTROL_TYPES.includes(type);
    if (!isControl && !isNext(this.#at, id)) return;
    // Most controls carry no id, and the stream's last one may be of an event that was passed over.
    if (!isControl || MOVING.includes(type)) this.#at = id;
    events.push({ type, id: this.#at, ...parseCursor(this.#at), data: JSON.parse(data) });
    this.#caughtUp ||= type === "caught_up";
    if (!isControl) this.#settled = this.#caughtUp && TERMINAL_TYPES.includes(type);
    if (type === "reauth") this.#renew();
    if (type === "reconnect") throw new Cut("told", retryMs);
  }

  /** End it if there is another token to come back with: with the same one we would only be told again. */
  async #renew() {
    const isAnother = await this.#parts.api.renew(this.#token).catch(() => false);
    if (isAnother) this.cut("told");
  }

  /** Wait for `promise`, but no longer than for a byte, and not beyond `cut`. */
  #within(promise) {
    const { environment, stallMs } = this.#parts;
    const timer = environment.setTimeout(() => this.cut("stalled"), stallMs);
    this.#waitsSince = environment.now();
    const first = new Promise((resolve, reject) => {
      this.#giveUp = reject;
      promise.then(resolve, reject);
      if (this.#gate.signal.aborted) reject(this.#gate.signal.reason);
    });
    return first.finally(() => {
      environment.clearTimeout(timer);
      this.#waitsSince = Infinity;
    });
  }
}
