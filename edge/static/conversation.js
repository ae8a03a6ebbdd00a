// The conversation as data: a pure reducer from events to what a page shows.
//
// Knows nothing of the network or the DOM. Rules are those of PROTOCOL.md: events are taken in the
// order of their seq and once each; `message` replaces its tokens; a `rewind` takes back tokens only.

export const EVENT_TYPES = [
  "turn_start", "token", "reasoning", "message", "tool_start", "tool_progress", "tool_end",
  "state", "notice", "suspended", "custom", "done", "error",
];
export const CONTROL_TYPES = ["rewind", "reset", "caught_up", "status", "reconnect"];

/** An empty conversation, before the first event. */
export const EMPTY = Object.freeze({ cursor: "0-0", turns: [], degraded: false });

/** Thrown when events are missing: the stream must be opened again from the cursor. */
export class Gap extends Error {}

/** The conversation that a snapshot describes. */
export function fromSnapshot(snapshot) {
  const seq = parseCursor(snapshot.cursor).seq;
  const turns = snapshot.turns.map((turn) => ({ ...turn, items: turn.items.map((item, at) => itemFrom(item, at, seq)) }));
  return { ...EMPTY, cursor: snapshot.cursor, turns };
}

/** The next conversation. `event` is `{ type, id, data }` with `data` parsed. */
export function reduce(state, event) {
  const control = CONTROLS[event.type];
  if (control) return control(state, event);
  const { epoch, seq } = parseCursor(event.id);
  const at = parseCursor(state.cursor);
  if (epoch < at.epoch || seq <= at.seq) return state; // a stale connection, or a repeat
  if (seq > at.seq + 1) throw new Gap();
  const apply = EVENTS[event.type];
  const next = apply ? apply(state, event.data, seq) : state;
  return { ...next, cursor: event.id };
}

/** The turn that has not ended, if there is one. */
export function openTurn(state) {
  const last = state.turns.at(-1);
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

/** Whether a message that was sent after the turn `unsent.after` has become no turn yet. */
export function isPending(state, unsent) {
  return Boolean(unsent) && state.turns.at(-1)?.turn_id === unsent.after;
}

/** A message's text: whole once it is settled, else its tokens so far. */
export function textOf(item) {
  if (item.pieces) return item.pieces.map((piece) => piece.text).join("");
  return (item.parts ?? []).map((part) => part.text ?? "").join("");
}

const PARKING = ["input_required", "client_tool"];

const CONTROLS = {
  rewind: (state, event) => ({ ...state, cursor: event.id, turns: state.turns.map((t) => cut(t, event.data.to)) }),
  reset: (state, event) => ({ ...EMPTY, cursor: event.id }),
  status: (state, event) => ({ ...state, degraded: event.data.state === "degraded" }),
  caught_up: (state) => state,
  reconnect: (state) => state,
};

const EVENTS = {
  turn_start(state, data) {
    if (state.turns.some((turn) => turn.turn_id === data.turn_id)) {
      // A further attempt withdraws what the one before it left unsettled.
      return inTurn(state, data, (turn) => {
        const { suspended, ...rest } = turn;
        return { ...rest, state: "running", items: turn.items.filter((item) => !item.pieces) };
      });
    }
    return { ...state, turns: [...state.turns, { ...data, state: "running", items: [] }] };
  },
  token: (state, data, seq) => inMessage(state, data, (item) => ({ ...item, pieces: [...item.pieces, { seq, text: data.text }] })),
  // Not shown; but a message that began with it keeps its place, until a rewind takes that back.
  reasoning: (state, data, seq) => inMessage(state, data, (item) => ({ ...item, pieces: [...item.pieces, { seq, text: "" }] })),
  message: (state, data) => inItem(state, data, messageKey(data), () => ({ ...without(data), key: messageKey(data), type: "message" })),
  tool_start: (state, data) => inTool(state, data, (item) => ({ ...item, ...without(data) })),
  tool_progress: (state, data, seq) => inTool(state, data, (item) => ({ ...item, progress: { ...data, seq } })),
  tool_end: (state, data) => inTool(state, data, (item) => ({ ...item, ...without(data) })),
  notice: (state, data, seq) => inItem(state, data, `n:${seq}`, () => ({ ...without(data), key: `n:${seq}`, type: "notice" })),
  suspended: (state, data) => inTurn(state, data, (turn) => ({ ...turn, state: "suspended", suspended: data })),
  done: (state, data) => inTurn(state, data, (turn) => ({ ...turn, ...data, state: "finished" })),
  error: (state, data) => inTurn(state, data, (turn) => ({ ...turn, ...data, outcome: "failed", state: "finished" })),
};

function parseCursor(text) {
  const [epoch, seq] = text.split("-").map(Number);
  return { epoch, seq };
}

function itemFrom(item, at, seq) {
  const keys = { tool_call: `c:${item.call_id}`, message: messageKey(item) };
  const key = keys[item.type] ?? `s:${at}`; // a notice may name a message without being it
  if (item.status !== "streaming") return { ...item, key };
  return { ...item, key, pieces: [{ seq, text: item.text ?? "" }] };
}

function messageKey(data) {
  return `m:${data.message_id}`;
}

function without({ turn_id, ...rest }) {
  return rest;
}

function inTurn(state, data, change) {
  const turns = state.turns.map((turn) => (turn.turn_id === data.turn_id ? change(turn) : turn));
  return { ...state, turns };
}

function inItem(state, data, key, change) {
  return inTurn(state, data, (turn) => {
    const at = turn.items.findIndex((item) => item.key === key);
    const changed = change(turn.items[at]);
    const items = turn.items.map((item, index) => (index === at ? changed : item));
    return { ...turn, items: at < 0 ? [...items, changed] : items };
  });
}

function inMessage(state, data, change) {
  const key = messageKey(data);
  const fresh = { key, type: "message", message_id: data.message_id, role: "agent", status: "streaming", pieces: [] };
  return inItem(state, data, key, (item) => change(item?.pieces ? item : fresh));
}

function inTool(state, data, change) {
  const key = `c:${data.call_id}`;
  return inItem(state, data, key, (item) => change(item ?? { key, type: "tool_call", call_id: data.call_id }));
}

/** What is left of a turn when everything after `seq` did not survive its writer. */
function cut(turn, seq) {
  const items = turn.items.map((item) => {
    if (item.pieces) return { ...item, pieces: item.pieces.filter((piece) => piece.seq <= seq) };
    if (item.progress?.seq > seq) return { ...item, progress: undefined };
    return item;
  });
  return { ...turn, items: items.filter((item) => item.pieces?.length !== 0) };
}
