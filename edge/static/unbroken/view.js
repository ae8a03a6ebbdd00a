// The conversation as a value: a pure fold of events into what a page shows.
//
// Knows nothing of the network or the DOM. A view has the shape of the server's snapshot, and equals the one that
// the journal would give. What has not changed keeps its identity, from the whole view down to a single item.
//
// Only coalescable events are ever taken back (PROTOCOL.md, P-SSE-11). So a view carries the last view before them,
// and them; a rewind folds those that survived once more. The trail has a symbol for its name, so that it is
// neither printed, serialised nor cloned.

import { Gap, START, isNext, parseCursor } from "./cursor.js";

export const EVENT_TYPES = Object.freeze([
  "turn_start", "token", "reasoning", "message", "tool_start", "tool_progress", "tool_end",
  "state", "notice", "suspended", "custom", "done", "error",
]);
export const CONTROL_TYPES = Object.freeze(["rewind", "reset", "caught_up", "status", "reauth", "reconnect"]);
export const TERMINAL_TYPES = Object.freeze(["done", "error"]);

const LASTING = ["turn_start", "message", "tool_start", "tool_end", "state", "notice", "suspended", ...TERMINAL_TYPES];
const PARKING = ["input_required", "client_tool"];
const TRAIL = Symbol("trail");

/** An empty conversation, before the first event. */
export const EMPTY = Object.freeze({
  cursor: START,
  degraded: false,
  turns: Object.freeze([]),
  state: Object.freeze({}),
});

/** The view that a snapshot describes; the events after its cursor continue it. */
export function fromSnapshot({ cursor, turns, state }) {
  return { ...EMPTY, cursor, state, turns: turns.map((turn) => ({ ...turn, items: turn.items.map(withKey) })) };
}

/**
 * The next view; the same one where `event`, `{ type, id, data }`, changes nothing.
 *
 * Throws `Gap` where events are missing, or where more is taken back than can be: read again from the server.
 */
export function fold(view, event) {
  const control = CONTROLS[event.type];
  if (control) return control(view, event);
  if (!isNext(view.cursor, event.id)) return view;
  const next = { ...view, ...EVENTS[event.type]?.(view, event.data, event.id), cursor: event.id };
  next[TRAIL] = LASTING.includes(event.type) ? undefined : { base: baseOf(view), event, before: view[TRAIL] };
  return next;
}

/** A view as plain data, for another tab. */
export function pack(view) {
  return { cursor: view.cursor, degraded: view.degraded, base: baseOf(view), loose: loose(view) };
}

/** The view that was packed. */
export function unpack({ cursor, degraded, base, loose }) {
  return { ...loose.reduce((view, event) => fold(view, event), base), cursor, degraded };
}

/** The turn that has not ended, if there is one. */
export function openTurn(view) {
  const last = view.turns.at(-1);
  return last && last.state !== "finished" ? last : undefined;
}

/** Whether the turn waits for a person or for this page, rather than for its runtime. */
export function isParked(turn) {
  return turn.state === "suspended" && PARKING.includes(turn.suspended.reason);
}

/** Whether the call is one that a parked turn waits for. */
export function isAsked(turn, call) {
  return isParked(turn) && !call.outcome && turn.suspended.pending_call_ids.includes(call.call_id);
}

/** A message's text: whole once it is settled, else its tokens so far. */
export function textOf(item) {
  return item.parts ? item.parts.map((part) => part.text ?? "").join("") : (item.text ?? "");
}

const CONTROLS = {
  rewind,
  reset: (view, { id }) => ({ ...EMPTY, cursor: id, degraded: view.degraded }),
  status(view, { data }) {
    const degraded = data.state === "degraded";
    return degraded === view.degraded ? view : { ...view, degraded };
  },
  caught_up: (view) => view,
  reauth: (view) => view,
  reconnect: (view) => view,
};

const EVENTS = {
  turn_start(view, data) {
    const known = view.turns.some((turn) => turn.turn_id === data.turn_id);
    if (known) return inTurn(view, data.turn_id, (turn) => startAgain(turn, data.attempt));
    return { turns: [...view.turns, { ...data, state: "running", items: [] }] };
  },
  token: (view, data) => inMessage(view, data, "text"),
  reasoning: (view, data) => inMessage(view, data, "reasoning"),
  message: (view, data) =>
    inItem(view, data.turn_id, messageKey(data), (_, key) => ({ key, type: "message", ...without(data) })),
  tool_start: (view, data) => inCall(view, data, data),
  tool_progress: (view, data) => inCall(view, data, { progress: without(data) }),
  tool_end: (view, data) => inCall(view, data, data),
  notice: (view, data, id) => added(view, "notice", data, id),
  custom: (view, data, id) => added(view, "custom", data, id),
  state: (view, data) => ({ state: data.changes.reduce(changed, view.state) }),
  suspended: (view, data) =>
    inTurn(view, data.turn_id, (turn) => ({ ...turn, state: "suspended", suspended: without(data) })),
  done: (view, data) => inTurn(view, data.turn_id, (turn) => ({ ...turn, ...data, state: "finished" })),
  error: (view, data) =>
    inTurn(view, data.turn_id, (turn) => ({ ...turn, outcome: "failed", ...data, state: "finished" })),
};

/** What is left when everything after `data.to` did not survive its writer. */
function rewind(view, { id, data }) {
  const base = baseOf(view);
  if (data.to < parseCursor(base.cursor).seq) throw new Gap("more was taken back than ever is");
  const survivors = loose(view).filter((event) => parseCursor(event.id).seq <= data.to);
  return unpack({ cursor: id, degraded: view.degraded, base, loose: survivors });
}

function baseOf(view) {
  return view[TRAIL]?.base ?? view;
}

/** What may still be taken back, oldest first. */
function loose(view) {
  const events = [];
  for (let step = view[TRAIL]; step; step = step.before) events.push(step.event);
  return events.reverse();
}

/** A further attempt withdraws what the one before it left unsettled. */
function startAgain({ suspended, ...turn }, attempt) {
  return { ...turn, attempt, state: "running", items: turn.items.filter((item) => item.status !== "streaming") };
}

function changed(state, { key, value_json, removed }) {
  if (!removed) return { ...state, [key]: value_json };
  const { [key]: gone, ...rest } = state;
  return rest;
}

/** A snapshot's item with the key that it would have had from events, so that its place is found again. */
function withKey(item, place) {
  const keys = { tool_call: `c:${item.call_id}`, message: messageKey(item) };
  return { ...item, key: keys[item.type] ?? `s:${place}` }; // a notice may name a message without being it
}

function messageKey(data) {
  return `m:${data.message_id}`;
}

function without({ turn_id, ...rest }) {
  return rest;
}

function inTurn(view, turnId, change) {
  const at = view.turns.findLastIndex((turn) => turn.turn_id === turnId);
  return at < 0 ? view : { turns: view.turns.with(at, change(view.turns[at])) };
}

function inItem(view, turnId, key, change) {
  return inTurn(view, turnId, ({ items, ...turn }) => {
    const at = items.findLastIndex((item) => item.key === key);
    const item = change(items[at], key);
    return { ...turn, items: at < 0 ? [...items, item] : items.with(at, item) };
  });
}

function inMessage(view, { turn_id, message_id, text }, part) {
  return inItem(view, turn_id, messageKey({ message_id }), (item, key) => {
    const open = item ?? { key, type: "message", message_id, status: "streaming" };
    return { ...open, [part]: (open[part] ?? "") + text };
  });
}

function inCall(view, { turn_id, call_id }, data) {
  return inItem(view, turn_id, `c:${call_id}`, (item, key) => {
    const open = item ?? { key, type: "tool_call", call_id };
    return { ...open, ...without(data) };
  });
}

function added(view, type, data, id) {
  const item = { key: `e:${id}`, type, ...without(data) };
  return inTurn(view, data.turn_id, (turn) => ({ ...turn, items: [...turn.items, item] }));
}
