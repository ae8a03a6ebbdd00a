// Folds events with the library's view, for tests in Python: one JSON line in, one out.
//
// A line is `{ page, snapshot, events }`. Each page keeps its view here, for what a rewind needs is no part of its
// JSON; `snapshot` begins it anew, and so does the first mention of it.

import { createInterface } from "node:readline";

import { EMPTY, Gap, fold, fromSnapshot, isAsked, isParked, openTurn, textOf } from "../../../edge/static/unbroken/unbroken.js";

const views = new Map();

/** Fold until an event does not fit; tell which events left the view the very object that it was. */
function foldAll({ page, snapshot, events = [] }) {
  let view = snapshot ? fromSnapshot(snapshot) : (views.get(page) ?? EMPTY);
  const unchanged = [];
  let gap = false;
  for (const event of events) {
    try {
      const next = fold(view, event);
      unchanged.push(next === view);
      view = next;
    } catch (error) {
      if (!(error instanceof Gap)) throw error;
      gap = true;
      break;
    }
  }
  views.set(page, view);
  return { view, screen: screen(view), unchanged, gap };
}

/** What a page shows of a view, with the same functions that the page asks. */
function screen(view) {
  return {
    cursor: view.cursor,
    degraded: view.degraded,
    open: openTurn(view)?.turn_id ?? null,
    keys: view.turns.map((turn) => turn.items.map((item) => item.key)),
    turns: view.turns.map((turn) => ({
      id: turn.turn_id,
      finished: turn.state === "finished" ? turn.outcome : null,
      parked: isParked(turn),
      items: turn.items.map((item) => shown(turn, item)).filter(Boolean),
    })),
  };
}

function shown(turn, item) {
  if (item.type === "message") return [item.message_id, textOf(item), item.status];
  if (item.type === "notice") return ["notice", item.error.user_message];
  if (item.type !== "tool_call") return undefined;
  const progress = item.outcome ? null : (item.progress?.message ?? null);
  return [item.call_id, item.name ?? null, item.outcome ?? null, progress, isAsked(turn, item)];
}

for await (const line of createInterface({ input: process.stdin })) console.log(JSON.stringify(foldAll(JSON.parse(line))));
