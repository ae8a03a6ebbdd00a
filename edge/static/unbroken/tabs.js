// One stream for all tabs of a browser that show a session: who holds it, and what it tells the others.
//
// Knows nothing of events. A Web Lock elects the leading tab, and passes to the next one when that closes. A tab
// that was frozen keeps its lock and says nothing; the first tab that is looked at takes the lock from it.

const ANSWER_MS = 2_000;
const SILENCE_MS = 25_000;

export class Tabs {
  #parts;
  #channel;
  #queued; // gives up our place in the queue for the lock
  #reign; // ends our leading, while we lead
  #timer;

  /**
   * `lead(signal)` is run while this tab leads; `hear(message)` is told what another leading tab says;
   * `answer(question)` makes the leading tab's answer; `question()` is what this tab asks it.
   */
  constructor({ name, lead, hear, answer, question, signal, environment }) {
    this.#parts = { name, lead, hear, answer, question, signal, environment };
  }

  get leads() {
    return this.#reign !== undefined;
  }

  start() {
    const { name, signal, environment } = this.#parts;
    if (signal.aborted) return;
    this.#channel = environment.tabs.channel(name);
    this.#channel.onmessage = ({ data }) => this.#receive(data);
    const stopListening = environment.onSign((sign) => sign !== "offline" && this.ask());
    signal.addEventListener("abort", () => {
      stopListening();
      this.#close();
    });
    this.#queue();
    this.ask();
  }

  /** Tell the other tabs, as the leading one. */
  say(message) {
    if (this.leads && !this.#parts.signal.aborted) this.#channel.postMessage(message);
  }

  /**
   * Ask the leading tab how things stand, or to connect `again`. If it is silent, and this tab is looked at, this
   * one leads instead.
   */
  ask({ again = false } = {}) {
    if (this.leads) return;
    this.#channel.postMessage({ question: { ...this.#parts.question(), again } });
    this.#expect(ANSWER_MS, () => this.#missAnswer());
  }

  #missAnswer() {
    if (!this.#parts.environment.isVisible()) return this.#expect(SILENCE_MS, () => this.ask());
    this.#queued.abort();
    this.#hold({ steal: true });
  }

  #receive(message) {
    if (this.leads) {
      if (message.question) this.say(this.#parts.answer(message.question));
    } else if (!message.question) {
      this.#expect(SILENCE_MS, () => this.ask());
      this.#parts.hear(message);
    }
  }

  #queue() {
    this.#queued = new AbortController();
    this.#hold({ signal: this.#queued.signal });
  }

  /** Lead for as long as the lock is ours; if it was taken from us, queue again. */
  async #hold(options) {
    const { name, signal, environment } = this.#parts;
    const reign = new AbortController();
    try {
      await environment.tabs.locks.request(name, options, () => this.#rule(reign));
    } catch (error) {
      if (error.name !== "AbortError") throw error; // it was taken from us, or we left the queue
    }
    if (this.#reign !== reign) return;
    this.#reign = undefined;
    reign.abort();
    if (signal.aborted) return;
    this.#queue();
    this.ask();
  }

  #rule(reign) {
    this.#reign = reign;
    this.#expect();
    return this.#parts.lead(reign.signal);
  }

  /** Wait for the next thing for `ms` and then do `otherwise`; without arguments, wait no more. */
  #expect(ms, otherwise) {
    const { environment } = this.#parts;
    environment.clearTimeout(this.#timer);
    this.#timer = otherwise && environment.setTimeout(otherwise, ms);
  }

  #close() {
    this.#expect();
    this.#reign?.abort();
    this.#queued.abort();
    this.#channel.close();
  }
}
