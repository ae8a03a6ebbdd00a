// A reader of a stream, as tests of streams have it: it keeps what it was handed, and what it was told of the connection.
//
// Knows nothing of what the stream should do.

import { Api } from "../../../edge/static/unbroken/api.js";
import { Stream } from "../../../edge/static/unbroken/stream.js";
import { World } from "./world.mjs";

export const PATH = "/v1/sessions/s1/events";

/** A reader that takes in whatever comes, and moves its cursor with it. */
export function reader(options = {}) {
  const world = options.world ?? new World();
  const tab = world.tab();
  const { environment } = tab;
  const closing = new AbortController();
  const it = { world, tab, cursor: "0-0", events: [], states: [], over: false, close: () => closing.abort() };
  const api = new Api({ token: options.token, environment });
  const report = ({ state }) => it.states.push(state);
  const cursor = () => it.cursor;
  it.stream = new Stream({ api, path: PATH, cursor, report, signal: closing.signal, environment, until: options.until });
  it.ended = read(it).catch((error) => (it.error = error));
  return it;
}

async function read(it) {
  for await (const events of it.stream) {
    it.events.push(...events.map(({ type, id }) => `${type} ${id}`));
    it.cursor = events.at(-1).id;
  }
  it.over = true;
}
