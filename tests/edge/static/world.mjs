// A browser and a server for tests of the client library, in virtual time: nothing waits, nothing is random.
//
// Knows nothing of what the library should do. Tests take each request that was made, and answer it byte by byte.

import assert from "node:assert/strict";

import { FakeTabs } from "./fake_tabs.mjs";

const ENCODER = new TextEncoder();

/** One request, and the answer that the test gives to it. */
class Exchange {
  #resolve;
  #reject;
  #body;

  /** `deaf` does as a bad polyfill: it heeds no abort, and what it still has to say arrives. */
  constructor(url, init, deaf) {
    Object.assign(this, { url, ...init });
    this.answer = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    if (!deaf) init.signal?.addEventListener("abort", () => this.fail(init.signal.reason));
  }

  get cursor() {
    return this.headers["Last-Event-ID"];
  }

  get aborted() {
    return Boolean(this.signal?.aborted);
  }

  /** Answer with an event stream that goes on until `end` or `fail`. */
  stream(...frames) {
    const body = new ReadableStream({ start: (controller) => (this.#body = controller) });
    this.#resolve(new Response(body, { headers: { "Content-Type": "text/event-stream; charset=utf-8" } }));
    return this.send(...frames);
  }

  send(...frames) {
    for (const frame of frames) this.#body.enqueue(typeof frame === "string" ? ENCODER.encode(frame) : frame);
    return this;
  }

  end() {
    this.#body.close();
  }

  fail(error = new TypeError("network error")) {
    this.#reject(error);
    try {
      this.#body?.error(error);
    } catch {
      // It had ended.
    }
  }

  json(body, { status = 200, headers } = {}) {
    this.#resolve(Response.json(body, { status, headers }));
  }

  problem(status, code = "", headers = {}) {
    this.json({ type: `urn:unbroken:problem:${code}`, title: code, status }, { status, headers });
  }

  reply(response) {
    this.#resolve(response);
  }
}

export class World {
  now = 0;
  chance = 0.5;
  deaf = false;
  raised = [];
  #timers = [];
  #requests = [];
  #made = 0;
  #tabs = new FakeTabs();

  /**
   * One tab of the browser: an environment whose signs the test gives. `shares` is whether it has Web Locks, and they are
   * refused where it is `sandboxed`.
   */
  tab({ shares = false, sandboxed = false } = {}) {
    const listeners = new Set();
    const tab = {
      online: true,
      visible: true,
      frozen: false,
      sandboxed,
      listeners,
      sign: (sign) => [...listeners].forEach((listener) => listener(sign)),
    };
    tab.environment = {
      fetch: (url, init) => this.#fetch(url, init, tab),
      now: () => this.now,
      random: () => this.chance,
      newKey: () => `key-${String((this.#made += 1)).padStart(16, "0")}`,
      setTimeout: (callback, ms) => this.#setTimeout(callback, ms, tab),
      clearTimeout: (timer) => (this.#timers = this.#timers.filter((other) => other !== timer)),
      isOnline: () => tab.online,
      isVisible: () => tab.visible,
      onSign: (listener) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
      raise: (error) => this.raised.push(error),
      tabs: shares ? this.#tabs.environment(tab) : undefined,
    };
    return tab;
  }

  /** The only request that nobody has taken yet. */
  async take() {
    await settle();
    assert.equal(this.#requests.length, 1, `${this.#requests.length} requests, not one`);
    return this.#requests.shift();
  }

  /** The next request, however long it takes. */
  async takeNext() {
    await settle();
    while (this.#requests.length === 0) assert.ok(await this.#jump(Infinity), "nothing will ever be asked");
    return this.take();
  }

  /** The next request, which must come after exactly `ms`. */
  async takeAfter(ms) {
    if (ms > 0) {
      await this.pass(ms - 1);
      await this.nothingAsked();
      await this.pass(1);
    }
    return this.take();
  }

  async nothingAsked() {
    await settle();
    assert.deepEqual(this.#requests.map(({ url }) => url), []);
  }

  /** Let `ms` pass, timer by timer. */
  async pass(ms) {
    const until = this.now + ms;
    await settle();
    while (await this.#jump(until));
    this.now = until;
  }

  /** Go to the next timer that is due by `until`, if there is one. */
  async #jump(until) {
    const next = this.#timers.filter(({ at, tab }) => at <= until && !tab.frozen).sort((a, b) => a.at - b.at)[0];
    if (!next) return false;
    this.#timers.splice(this.#timers.indexOf(next), 1);
    this.now = Math.max(this.now, next.at);
    next.callback();
    await settle();
    return true;
  }

  /** How many timers are armed: none when everything was given back. */
  get timers() {
    return this.#timers.length;
  }

  #fetch(url, init, tab) {
    const exchange = new Exchange(url, { tab, ...init }, this.deaf);
    this.#requests.push(exchange);
    return exchange.answer;
  }

  #setTimeout(callback, ms, tab) {
    const timer = { at: this.now + ms, callback, tab };
    this.#timers.push(timer);
    return timer;
  }
}

/** Let everything that is ready happen. */
export async function settle() {
  for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** A block as the edge writes it. */
export function block(type, data, id, retryMs) {
  const lines = [`event: ${type}`, `data: ${JSON.stringify(data)}`, "", ""];
  if (id) lines.unshift(`id: ${id}`);
  if (retryMs !== undefined) lines.unshift(`retry: ${retryMs}`);
  return lines.join("\n");
}

export const PING = ": ping\n";
export const CAUGHT_UP = block("caught_up", {});

/** The start of the one turn, a token of its one message, its message and its end. */
export const start = (seq = 1, epoch = 1) => block("turn_start", { turn_id: "t1", attempt: epoch, input: [] }, `${epoch}-${seq}`);
export const token = (seq, text = "x", epoch = 1) => block("token", { turn_id: "t1", message_id: "m1", text }, `${epoch}-${seq}`);
export const done = (seq, epoch = 1) => block("done", { turn_id: "t1", outcome: "completed" }, `${epoch}-${seq}`);
