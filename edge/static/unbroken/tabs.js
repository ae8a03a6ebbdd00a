// One stream for all tabs of a browser that show a session: who holds it, and what it tells the others.
//
// Knows nothing of events. A Web Lock elects the leading tab, and passes to the next one when that closes. A tab
// that was frozen keeps its lock and says nothing; the first tab that is looked at takes the lock from it. A page that
// is left gives everything up, for it may come back out of the back/forward cache: browsers keep no page there that
// holds a lock, or drop it as soon as another one wants that.

const ANSWER_MS = 2_000;
const SILENCE_MS = 25_000;

export class Tabs {
  #parts;
  #channel; // missing while the page is left
  #candidacy; // ends our place in the queue for the lock, or our leading
  #reign; // the signal that ends our leading; missing before the first time
  #timer;

  /**
   * `lead(signal)` is run while this tab leads; `hear(message)` is told what another leading tab says;
   * `answer(question)` makes the leading tab's answer; `question()` is what this tab asks it.
   */
  constructor({ name, lead, hear, answer, question, signal, environment }) {
    this.#parts = { name, lead, hear, answer, question, signal, environment };
  }

  get leads() {
    return this.#reign?.aborted === false;
  }

  start() {
    const { signal, environment } = this.#parts;
    if (signal.aborted) return;
    const stopListening = environment.onSign((sign) => this.#notice(sign));
    signal.addEventListener("abort", () => {
      stopListening();
      this.#leave();
    });
    this.#join();
  }

  /** Tell the other tabs, as the leading one. */
  say(message) {
    if (this.leads) this.#channel.postMessage(message);
  }

  #notice(sign) {
    if (sign === "left" || sign === "restored") this.#leave();
    if (sign === "restored") this.#join();
    if (sign === "online" || sign === "visible") this.ask();
    if (sign === "wanted") this.ask({ again: true });
  }

  #join() {
    const { name, environment } = this.#parts;
    this.#channel = environment.tabs.channel(name);
    this.#channel.onmessage = ({ data }) => this.#receive(data);
    this.#stand();
    this.ask();
  }

  #leave() {
    this.#expect();
    this.#candidacy?.abort();
    this.#channel?.close();
    this.#channel = undefined;
  }

  /**
   * Ask the leading tab how things stand, or to connect `again`. If it is silent, and this tab is looked at, this
   * one leads instead.
   */
  ask({ again = false } = {}) {
    if (this.leads || !this.#channel) return;
    this.#channel.postMessage({ question: { ...this.#parts.question(), again } });
    this.#expect(ANSWER_MS, () => this.#missAnswer());
  }

  #missAnswer() {
    if (this.#parts.environment.isVisible()) this.#stand({ steal: true });
    else this.#expect(SILENCE_MS, () => this.ask());
  }

  #receive(message) {
    if (this.leads) {
      if (message.question) this.say(this.#parts.answer(message.question));
    } else if (!message.question) {
      this.#expect(SILENCE_MS, () => this.ask());
      this.#parts.hear(message);
    }
  }

  /** Lead as soon as the lock is ours, in turn or by a `steal`, and for as long as it is. */
  async #stand({ steal = false } = {}) {
    const { name, environment } = this.#parts;
    this.#candidacy?.abort();
    const candidacy = (this.#candidacy = new AbortController());
    const { signal } = candidacy;
    const options = steal ? { steal } : { signal }; // a steal takes no signal
    try {
      await environment.tabs.locks.request(name, options, () => this.#rule(signal));
    } catch (error) {
      if (error.name === "SecurityError") return this.#rule(signal); // a page that may have no locks, such as in a sandbox
      if (error.name !== "AbortError") throw error; // it was taken from us, or we left the queue
    }
    if (signal.aborted) return;
    this.#stand(); // it was taken from us, and may come back
    this.ask();
  }

  #rule(signal) {
    this.#reign = signal;
    this.#expect();
    return this.#parts.lead(signal);
  }

  /** Wait for the next thing for `ms` and then do `otherwise`; without arguments, wait no more. */
  #expect(ms, otherwise) {
    const { environment } = this.#parts;
    environment.clearTimeout(this.#timer);
    this.#timer = otherwise && environment.setTimeout(otherwise, ms);
  }
}
