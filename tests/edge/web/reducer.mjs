// Folds events with the page's reducer, for tests in Python: one JSON line in, one out.
//
// `node reducer.mjs <path of conversation.js>`; a line is `{ state, snapshot, events }`, and every member is optional.

import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { EMPTY, Gap, fromSnapshot, isAsked, isParked, openTurn, reduce, textOf } = await import(pathToFileURL(process.argv[2]));

/** Fold until an event does not fit; tell which events left the state the very object that it was. */
function fold({ state, snapshot, events = [] }) {
  let at = snapshot ? fromSnapshot(snapshot) : (state ?? EMPTY);
  const unchanged = [];
  for (const event of events) {
    try {
      const next = reduce(at, event);
      unchanged.push(next === at);
      at = next;
    } catch (error) {
      if (!(error instanceof Gap)) throw error;
      return { state: at, screen: screen(at), unchanged, gap: true };
    }
  }
  return { state: at, screen: screen(at), unchanged, gap: false };
}

/** What a page shows of a state, with the same functions that the view asks. */
function screen(state) {
  return {
    cursor: state.cursor,
    degraded: state.degraded,
    open: openTurn(state)?.turn_id ?? null,
    keys: state.turns.map((turn) => turn.items.map((item) => item.key)),
    turns: state.turns.map((turn) => ({
      id: turn.turn_id,
      finished: turn.state === "finished" ? turn.outcome : null,
      parked: isParked(turn),
      items: turn.items.map((item) => shown(turn, item)).filter(Boolean),
    })),
  };
}

function shown(turn, item) {
  if (item.type === "message") return [item.message_id, textOf(item), item.pieces ? "streaming" : item.status];
  if (item.type === "notice") return ["notice", item.error.user_message];
  if (item.type !== "tool_call") return undefined;
  const progress = item.outcome ? null : (item.progress?.message ?? null);
  return [item.call_id, item.name, item.outcome ?? null, progress, isAsked(turn, item)];
}

for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(fold(JSON.parse(line))));
