// The edge's HTTP API: requests with credentials, and calls that go on until they are answered.
//
// Knows nothing of streams or of what is shown. Every call here may be repeated without harm: the server
// takes a repeated key, cancel or decision for the one that it has (PROTOCOL.md, P-HTTP-5, 10 and 14).

import { ProblemError, isPassing, problemOf } from "./problems.js";
import { bounded, decideWait, pause } from "./waiting.js";

/** Longer than the server takes to say that it cannot answer (10 s; P-HTTP-15). */
const ANSWER_MS = 25_000;

/** One server as one user sees it. `token` is a text, or a function `({ refresh }) => text`, or missing. */
export class Api {
  #options;
  #token; // a promise that requests share, or nothing until one is asked for
  #refresh = false; // until a token is refused or about to expire

  constructor({ baseUrl = "", headers = {}, token, credentials = "same-origin", environment }) {
    this.#options = { baseUrl, headers, token, credentials, environment };
  }

  /** The token of the newest request, to be given to `renew`. */
  get token() {
    return this.#token;
  }

  /** Fetch another token than `used`, which is about to expire. Resolves to whether it is another one. */
  async renew(used) {
    if (typeof this.#options.token !== "function") return false;
    return (await this.#another(used)) !== (await used);
  }

  /** Make one request; a 401 is answered with a fresh token, once, and then stands. */
  async request(path, init = {}) {
    const used = this.#currentToken();
    const response = await this.#fetch(path, init, await used);
    if (response.status !== 401 || typeof this.#options.token !== "function") return response;
    return this.#fetch(path, init, await this.#another(used));
  }

  /**
   * POST or GET until the server answers, and return its JSON and headers. `report` is told of every try and wait, as
   * by a stream.
   *
   * Rejects with `ProblemError` where the server refuses for good, and with the signal's reason when it aborts.
   */
  async call(method, path, { body, headers = {}, signal, report = () => {} } = {}) {
    const json = body && { body: JSON.stringify(body) };
    const type = body && { "Content-Type": "application/json" };
    const init = { method, ...json, headers: { Accept: "application/json", ...type, ...headers } };
    const { environment } = this.#options;
    for (let attempt = 0; ; attempt += 1) {
      try {
        signal?.throwIfAborted();
        report({ state: "connecting", attempt });
        return await bounded((given) => this.#once(path, { ...init, signal: given }), ANSWER_MS, environment, signal);
      } catch (error) {
        signal?.throwIfAborted();
        if (!isPassing(error)) throw error;
        const failures = attempt + 1;
        const wait = decideWait({ failures, toldMs: error.retryAfterMs, random: environment.random });
        const state = environment.isOnline() ? "waiting" : "offline";
        report({ state, attempt: failures, retryAt: environment.now() + wait, error });
        await pause(wait, environment, signal);
      }
    }
  }

  async #once(path, init) {
    const response = await this.request(path, init);
    if (!response.ok) throw await problemOf(response, this.#options.environment.now());
    return { body: await response.json(), headers: response.headers };
  }

  #another(used) {
    if (used === this.#token) { // else somebody else has fetched one meanwhile
      this.#token = undefined;
      this.#refresh = true;
    }
    return this.#currentToken();
  }

  #currentToken() {
    const { token } = this.#options;
    if (typeof token !== "function") return token;
    if (this.#token === undefined) {
      const asked = Promise.resolve({ refresh: this.#refresh }).then(token).catch(noToken);
      this.#token = asked;
      asked.catch(() => {
        if (this.#token === asked) this.#token = undefined;
      });
    }
    return this.#token;
  }

  #fetch(path, { headers, ...init }, token) {
    const { environment, baseUrl, credentials, headers: always } = this.#options;
    const authorization = token === undefined ? {} : { Authorization: `Bearer ${token}` };
    const all = { ...always, ...authorization, ...headers };
    return environment.fetch(baseUrl + path, { ...init, headers: all, credentials, cache: "no-store" });
  }
}

/** A page may reject with anything, also with nothing; from here on it is an error. */
function noToken(cause) {
  throw new Error("no token could be fetched", { cause });
}
