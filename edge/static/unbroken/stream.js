// A session's events without an end, over as many connections as that takes.
//
// Knows nothing of what is done with them. The reader owns the cursor: it is asked at every connect, so it moves
// only with what was taken in. One connection lives at a time, always the newest.

import { Connection, Cut } from "./connection.js";
import { isPassing } from "./problems.js";
import { CONTROL_TYPES } from "./view.js";
import { MOST_MS, decideWait, pause } from "./waiting.js";

const REVIVING = ["online", "restored", "wanted"];

/** Two of the server's pings (every 10 s) and some grace. */
export const STALL_MS = 25_000;

export class Stream {
  #parts;
  #current;
  #patience = new AbortController();
  #failures = 0;
  #openedAt;

  /**
   * `cursor()` is where the reader is; `until` is "follow" or "turn_end"; `report` is told every change of
   * `{ state, attempt, retryAt, error }`; `signal` ends it all.
   */
  constructor({ api, path, cursor, until = "follow", stallMs = STALL_MS, report = () => {}, signal, environment }) {
    this.#parts = { api, path, cursor, until, stallMs, report, signal, environment };
  }

  /** Drop the connection at hand, and wait before the next one: what came did not fit. */
  distrust() {
    this.#stop("unfit");
  }

  #stop(reason) {
    this.#current?.cut(reason);
    this.#patience.abort();
  }

  /** Yields lists of events that came together. Throws `ProblemError` where the server refuses for good. */
  async *[Symbol.asyncIterator]() {
    const { environment, signal } = this.#parts;
    const close = () => this.#stop("closed");
    const stopListening = environment.onSign((sign) => this.#notice(sign));
    signal.addEventListener("abort", close);
    try {
      while (!signal.aborted) {
        const error = yield* this.#connection();
        if (!error) return;
        if (!isPassing(error)) throw error;
        await this.#rest(error);
      }
    } finally {
      stopListening();
      signal.removeEventListener("abort", close);
    }
  }

  /** One connection from its opening to its end; returns why it ended, or nothing if all was said. */
  async *#connection() {
    const { report, cursor, ...parts } = this.#parts;
    report({ state: "connecting", attempt: this.#failures });
    this.#openedAt = undefined;
    this.#current = new Connection({ ...parts, cursor: cursor() });
    try {
      for await (const events of this.#current.batches(() => this.#opened())) {
        if (events.some(({ type }) => !CONTROL_TYPES.includes(type))) this.#failures = 0;
        yield events;
      }
      return undefined;
    } catch (error) {
      return error;
    }
  }

  #opened() {
    this.#openedAt = this.#parts.environment.now();
    this.#parts.report({ state: "live", attempt: this.#failures });
  }

  /** Wait as long as it is fit to after `error`. */
  async #rest(error) {
    const { environment, report, signal } = this.#parts;
    if (signal.aborted || error.reason === "again") return;
    this.#patience = new AbortController();
    if (error.reason === "left") return pause(Infinity, environment, this.#patience.signal, []);
    const now = environment.now();
    if (now - this.#openedAt >= MOST_MS) this.#failures = 0; // a connection that lived is no failure
    if (error.reason !== "told") this.#failures += 1;
    const toldMs = error.toldMs ?? error.retryAfterMs;
    const wait = decideWait({ failures: this.#failures, toldMs, random: environment.random });
    if (error.reason === "told") this.#failures += 1;
    const state = environment.isOnline() ? waitingState(error) : "offline";
    report({ state, attempt: this.#failures, retryAt: now + wait, error });
    await pause(wait, environment, this.#patience.signal);
  }

  /** A network that comes back, or a page out of its cache, has left old connections dead; a cached page has none. */
  #notice(sign) {
    if (REVIVING.includes(sign)) this.#stop("again");
    if (sign === "offline" || sign === "left") this.#current?.cut(sign);
    if (sign === "visible") this.#current?.doubt();
  }
}

function waitingState(error) {
  return error instanceof Cut && error.reason === "stalled" ? "stalled" : "waiting";
}
