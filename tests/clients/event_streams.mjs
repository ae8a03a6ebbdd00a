// Reads a native event stream with one of the published readers, and prints what it got.
// Knows nothing of the server but the address. Each reader is used as its own documentation says.
import { createInterface } from "node:readline";
import { fetchEventSource } from "@microsoft/fetch-event-source";
import { EventSource } from "eventsource";
import { EventSourceParserStream } from "eventsource-parser/stream";

const TYPES = [
  "turn_start", "token", "reasoning", "message", "tool_start", "tool_progress", "tool_end", "state",
  "notice", "suspended", "custom", "done", "error", "rewind", "reset", "caught_up", "status", "reconnect",
  "ping",
];
const { reader, url } = JSON.parse(process.argv[2]);
const told = { events: [], opens: 0, hasEnded: false };

function print() {
  console.log(JSON.stringify(told));
}

function opened() {
  told.opens += 1;
  print();
}

/** Note an event; say whether it is the last of its turn. */
function note(type, id, data) {
  told.events.push({ type, id, data: JSON.parse(data) });
  print();
  return type === "done" || type === "error";
}

function ended() {
  told.hasEnded = true;
  print();
}

const READERS = {
  /** It comes back by itself, until the server says that nothing is left to say. */
  eventsource() {
    const source = new EventSource(url);
    source.onopen = opened;
    for (const type of TYPES) {
      source.addEventListener(type, (event) => {
        if (event.data !== undefined) note(type, event.lastEventId, event.data);
        else if (source.readyState === EventSource.CLOSED) ended(); // an error of the connection
      });
    }
  },

  /** It comes back after an error, and a tidy end is one as long as the turn goes on. */
  async "fetch-event-source"() {
    globalThis.window = globalThis;
    globalThis.document = Object.assign(new EventTarget(), { hidden: false });
    const done = new AbortController();
    await fetchEventSource(url, {
      signal: done.signal,
      onopen: async () => opened(),
      onmessage: ({ event, id, data }) => { if (note(event, id, data)) done.abort(); },
      onclose: () => { throw new Error("the turn goes on"); },
    });
    ended();
  },

  /** It only parses: to come back is left to its user. */
  async "eventsource-parser"() {
    let lastEventId = "0-0";
    for (let isOver = false; !isOver;) {
      try {
        const response = await fetch(url, { headers: { "Last-Event-ID": lastEventId } });
        opened();
        const text = response.body.pipeThrough(new TextDecoderStream());
        for await (const { event, id, data } of text.pipeThrough(new EventSourceParserStream())) {
          lastEventId = id ?? lastEventId;
          isOver = note(event, id, data) || isOver;
        }
      } catch (error) {
        if (!(error instanceof TypeError)) throw error; // anything but the network's
      }
    }
    ended();
  },
};

void READERS[reader]();
for await (const line of createInterface({ input: process.stdin })) {
  document.hidden = JSON.parse(line).hidden;
  document.dispatchEvent(new Event("visibilitychange"));
}
process.exit(0);
