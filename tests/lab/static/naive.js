// The naive column's client, as tutorials write it: POST the prompt, read the stream, and if it breaks POST the prompt again.
//
// Knows nothing of the page. Deliberately absent: a cursor, an idempotency key, a sign of life, a difference between an
// end and a cut. `told` is how the lab looks on.

const RETRY_MS = 1_000;
const MOST_TRIES = 3;

export class NaiveChat {
  constructor(told) {
    this.told = told;
    this.id = crypto.randomUUID();
    this.bubbles = [];
    this.status = "connecting";
    this.leaving = new AbortController();
  }

  async start(prompt) {
    for (let run = 1; run <= MOST_TRIES && !this.ended; run += 1) {
      try {
        await this.read(String(run), prompt);
        this.finish("finished");
      } catch {
        if (this.leaving.signal.aborted) return;
        this.bubbles = this.becoming("broken");
        this.say("the connection broke");
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
        if (this.leaving.signal.aborted) return;
      }
    }
    if (!this.ended) this.finish(`gave up after ${MOST_TRIES} tries`);
  }

  close() {
    this.leaving.abort();
  }

  async read(run, prompt) {
    if (run !== "1") this.told.again(run);
    this.say(run === "1" ? "connected" : `sends the prompt again (try ${run})`);
    this.bubbles = [...this.bubbles, { kind: "text", text: "" }];
    const answer = await fetch("/naive/chat", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ chat: this.id, run, prompt }),
      signal: this.leaving.signal,
    });
    if (!answer.ok) throw new Error("the server refused");
    let rest = "";
    for await (const piece of pieces(answer.body)) {
      const blocks = (rest + piece).split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) this.take(run, block.slice("data: ".length));
    }
  }

  take(run, data) {
    if (data === "[DONE]") return;
    const event = JSON.parse(data);
    this.add(event);
    this.told.shown(run, event.number);
  }

  add({ type, text }) {
    if (type === "tool") {
      this.bubbles = [...this.bubbles, { kind: "tool", text, state: "runs" }, { kind: "text", text: "" }];
      return;
    }
    const last = this.bubbles.at(-1);
    this.bubbles = [...this.becoming("done").slice(0, -1), { ...last, text: last.text + text }];
  }

  /** The bubbles, with a tool that runs in another state. */
  becoming(state) {
    return this.bubbles.map((bubble) => (bubble.state === "runs" ? { ...bubble, state } : bubble));
  }

  finish(status) {
    this.ended = true;
    this.told.ended();
    this.say(status);
  }

  say(status) {
    this.status = status;
    this.told.changed();
  }
}

/** The texts of a body. Not every browser can iterate a stream. */
async function* pieces(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let { done, value } = await reader.read(); !done; { done, value } = await reader.read()) yield value;
}
