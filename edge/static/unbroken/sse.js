// Bytes of an event stream in, its blocks out: the algorithm of the HTML standard ("Server-sent events").
//
// Knows nothing of connections or of what an event means. Bytes may be split anywhere, also within a
// character or between CR and LF; a block that the end cuts short is never dispatched.

/** One stream's parser; a connection that is made again needs a new one. */
export class Parser {
  #decoder = new TextDecoder(); // drops a leading byte order mark, and puts split characters together
  #line = "";
  #endedInCr = false;
  #type = "";
  #data = [];
  #retryMs;
  #id;

  /** `lastEventId` is the id that the reader had before this stream. */
  constructor(lastEventId = "") {
    this.lastEventId = this.#id = lastEventId;
  }

  /** The blocks that `bytes` complete: `{ type, id, data, retryMs }`, `data` being text. */
  push(bytes) {
    let text = this.#decoder.decode(bytes, { stream: true });
    if (text === "") return [];
    if (this.#endedInCr && text[0] === "\n") text = text.slice(1);
    this.#endedInCr = text === "" ? false : text.endsWith("\r");
    const lines = text.split(/\r\n|\r|\n/);
    lines[0] = this.#line + lines[0];
    this.#line = lines.pop();
    return lines.map((line) => this.#read(line)).filter(Boolean);
  }

  #read(line) {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    if (colon < 0) return this.#field(line, "");
    if (colon > 0) this.#field(line.slice(0, colon), line.slice(colon + (line[colon + 1] === " " ? 2 : 1)));
  }

  #field(name, value) {
    if (name === "data") this.#data.push(value);
    else if (name === "event") this.#type = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
    else if (name === "retry" && /^[0-9]+$/.test(value)) this.#retryMs = Number(value);
  }

  #dispatch() {
    this.lastEventId = this.#id; // also without data: such a block only moves the id
    const told = this.#data.length > 0;
    const data = this.#data.join("\n");
    const block = { type: this.#type || "message", id: this.lastEventId, data, retryMs: this.#retryMs };
    this.#type = "";
    this.#data = [];
    this.#retryMs = undefined;
    return told ? block : undefined;
  }
}
