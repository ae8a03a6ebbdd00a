// The view: what events make of it, and what they leave alone.

import assert from "node:assert/strict";
import { test } from "node:test";

import { EMPTY, Gap, fold, fromSnapshot, isAsked, isParked, openTurn, textOf } from "../../../edge/static/unbroken/unbroken.js";
import { pack, unpack } from "../../../edge/static/unbroken/view.js";

const turn_id = "t1";
const event = (seq, type, data, epoch = 1) => ({ type, id: `${epoch}-${seq}`, data: { turn_id, ...data } });
const play = (events, state = EMPTY) => events.reduce((view, next) => fold(view, next), state);
const token = (seq, text, epoch) => event(seq, "token", { message_id: "m1", text }, epoch);
const texts = (state) => state.turns.at(-1).items.map(textOf);

const START = event(1, "turn_start", { attempt: 1, input: [{ type: "text", text: "Hi" }] });
const SAID = [START, token(2, "Hel"), token(3, "lo")];
const MESSAGE = { message_id: "m1", role: "agent", parts: [{ type: "text", text: "Hello!" }], status: "complete" };

const behaviours = {
  "tokens are shown as they come and replaced by their message"() {
    const state = play(SAID);
    assert.deepEqual(texts(state), ["Hello"]);
    assert.deepEqual(texts(play([event(4, "message", MESSAGE)], state)), ["Hello!"]);
    assert.equal(state.cursor, "1-3");
  },
  "a repeat changes nothing and a jump is an error"() {
    const state = play(SAID);
    assert.equal(fold(state, token(3, "lo")), state);
    assert.throws(() => fold(state, token(5, "!")), Gap);
  },
  "an event of an older epoch comes from a stale connection"() {
    const state = play([token(4, "!", 2)], play(SAID));
    assert.equal(fold(state, token(5, "?", 1)), state);
  },
  "a rewind takes back tokens and nothing else"() {
    const rewound = fold(play(SAID), { type: "rewind", id: "1-2", data: { to: 2 } });
    assert.deepEqual(texts(rewound), ["Hel"]);
    assert.deepEqual(texts(play([token(3, "p", 2)], rewound)), ["Help"]);
  },
  "a message of which nothing survived goes with its tokens"() {
    const other = event(4, "token", { message_id: "m2", text: "lost" });
    const rewound = fold(play([...SAID, other]), { type: "rewind", id: "1-3", data: { to: 3 } });
    assert.deepEqual(texts(rewound), ["Hello"]);
  },
  "a notice of a snapshot is not the message that it is about"() {
    const notice = { type: "notice", message_id: "m1", error: { user_message: "slow" } };
    const said = { type: "message", message_id: "m1", status: "streaming", text: "Hel" };
    const snapshot = { cursor: "1-4", turns: [{ turn_id, state: "running", items: [notice, notice, said] }] };
    const state = play([token(5, "lo")], fromSnapshot(snapshot));
    assert.deepEqual(texts(state), ["", "", "Hello"]);
    assert.equal(new Set(state.turns[0].items.map((item) => item.key)).size, 3);
  },
  "a further attempt withdraws what was not settled"() {
    const settled = play([...SAID, event(4, "message", MESSAGE), event(5, "token", { message_id: "m2", text: "Half" })]);
    const again = play([event(6, "turn_start", { attempt: 2 })], settled);
    assert.deepEqual(texts(again), ["Hello!"]);
  },
  "a reset clears everything and goes on where it says"() {
    const state = fold(play(SAID), { type: "reset", id: "0-99", data: { reason: "expired", first_seq: 100 } });
    assert.deepEqual([state.turns, state.cursor], [[], "0-99"]);
    assert.equal(play([event(100, "turn_start", { attempt: 1 })], state).turns.length, 1);
  },
  "a tool call is one card from its start to its end"() {
    const state = play([
      START,
      event(2, "tool_start", { call_id: "c1", name: "report" }),
      event(3, "tool_progress", { call_id: "c1", message: "half", fraction: 0.5 }),
      event(4, "tool_end", { call_id: "c1", outcome: "succeeded", result_json: "1" }),
    ]);
    const [card] = state.turns[0].items;
    assert.deepEqual([card.name, card.outcome, card.progress.fraction], ["report", "succeeded", 0.5]);
  },
  "a turn is open until its terminal event"() {
    const waiting = play([START, event(2, "suspended", { reason: "input_required", pending_call_ids: ["c1"] })]);
    assert.equal(openTurn(waiting).state, "suspended");
    assert.equal(openTurn(play([event(3, "done", { outcome: "cancelled" })], waiting)), undefined);
    assert.equal(play([event(3, "error", { code: "x" })], waiting).turns[0].outcome, "failed");
  },
  "a call is asked about while its turn waits for a person and the call has no end"() {
    const call = (seq, call_id) => event(seq, "tool_start", { call_id, name: "pay" });
    const waits = (reason) => event(4, "suspended", { reason, pending_call_ids: ["c1"] });
    const asked = (state) => state.turns[0].items.map((item) => isAsked(state.turns[0], item));
    const running = play([START, call(2, "c1"), call(3, "c2")]);
    assert.equal(isParked(running.turns[0]), false);
    assert.deepEqual(asked(running), [false, false]);
    for (const reason of ["input_required", "client_tool"]) assert.deepEqual(asked(play([waits(reason)], running)), [true, false]);
    for (const reason of ["checkpoint", "draining"]) assert.deepEqual(asked(play([waits(reason)], running)), [false, false]);
    const answered = play([waits("input_required"), event(5, "tool_end", { call_id: "c1", outcome: "succeeded" })], running);
    assert.deepEqual(asked(answered), [false, false]);
    const goesOn = play([waits("input_required"), event(5, "turn_start", { attempt: 2 })], running);
    assert.deepEqual(asked(goesOn), [false, false]);
  },
  "a snapshot goes on where it ended"() {
    const item = { type: "message", message_id: "m1", status: "streaming", text: "Hello" };
    const snapshot = { cursor: "1-3", turns: [{ turn_id, state: "running", items: [item] }] };
    const state = play([token(4, "!")], fromSnapshot(snapshot));
    assert.deepEqual(texts(state), ["Hello!"]);
    assert.deepEqual(texts(play([event(5, "message", MESSAGE)], state)), ["Hello!"]);
  },
  "an unknown event only moves the cursor"() {
    assert.equal(play([...SAID, event(4, "custom", { name: "x" })]).cursor, "1-4");
  },
  "the connection's own words change no event"() {
    const state = play(SAID);
    for (const type of ["caught_up", "reconnect"]) assert.equal(fold(state, { type, id: "1-3", data: {} }), state);
    assert.equal(fold(state, { type: "status", id: "1-3", data: { state: "degraded" } }).degraded, true);
  },
  "a rewind gives back what a lost event had replaced"() {
    const call = event(2, "tool_start", { call_id: "c1", name: "report" });
    const progress = (seq, message) => event(seq, "tool_progress", { call_id: "c1", message });
    const view = play([START, call, progress(3, "begun"), progress(4, "half")]);
    const rewound = fold(view, { type: "rewind", id: "1-3", data: { to: 3 } });
    assert.deepEqual(rewound, play([START, call, progress(3, "begun")]));
    assert.equal(rewound.turns[0].items[0].progress.message, "begun");
  },
  "a rewind behind what lasts does not fit: the log is another one"() {
    assert.throws(() => fold(play(SAID), { type: "rewind", id: "0-0", data: { to: 0 } }), Gap);
    const settled = play([event(4, "message", MESSAGE)], play(SAID));
    assert.throws(() => fold(settled, { type: "rewind", id: "1-3", data: { to: 3 } }), Gap);
  },
  "an event of a newer epoch that stands where ours do does not fit either"() {
    assert.throws(() => fold(play(SAID), token(3, "?", 2)), Gap);
  },
  "reasoning is kept apart from the text, and settled with it"() {
    const thought = event(2, "reasoning", { message_id: "m1", text: "Hm" });
    const view = play([START, thought, token(3, "Hello")]);
    const [item] = view.turns[0].items;
    assert.deepEqual([item.reasoning, item.text, item.status], ["Hm", "Hello", "streaming"]);
    const [settled] = play([event(4, "message", { ...MESSAGE, reasoning: "Hm." })], view).turns[0].items;
    assert.deepEqual([settled.reasoning, settled.text, textOf(settled)], ["Hm.", undefined, "Hello!"]);
  },
  "shared state is set and removed by key"() {
    const change = (seq, ...changes) => event(seq, "state", { changes });
    const view = play([START, change(2, { key: "a", value_json: "1" }, { key: "b", value_json: "2" })]);
    assert.deepEqual(view.state, { a: "1", b: "2" });
    assert.deepEqual(play([change(3, { key: "a", removed: true })], view).state, { b: "2" });
  },
  "what has not changed keeps its identity"() {
    const done = play([event(4, "message", MESSAGE), event(5, "done", { outcome: "completed" })], play(SAID));
    const second = { ...event(6, "turn_start", { attempt: 1 }), data: { turn_id: "t2", attempt: 1 } };
    const both = play([second, { ...token(7, "x"), data: { turn_id: "t2", message_id: "m2", text: "x" } }], done);
    assert.equal(both.turns[0], done.turns[0]);
    const called = play([event(4, "tool_start", { call_id: "c1", name: "report" })], play(SAID));
    const ended = play([event(5, "tool_end", { call_id: "c1", outcome: "succeeded" })], called);
    assert.equal(ended.turns[0].items[0], called.turns[0].items[0]);
  },
  "a view goes to another tab with all that may still be taken back"() {
    const view = play(SAID);
    const other = unpack(structuredClone(pack(view)));
    assert.equal(JSON.stringify(other), JSON.stringify(view));
    const rewind = { type: "rewind", id: "1-2", data: { to: 2 } };
    assert.equal(JSON.stringify(fold(other, rewind)), JSON.stringify(fold(view, rewind)));
    assert.deepEqual(texts(fold(other, rewind)), ["Hel"]);
  },
  "a view prints as the snapshot that it is, and no more"() {
    assert.deepEqual(Object.keys(JSON.parse(JSON.stringify(play(SAID)))).sort(), ["cursor", "degraded", "state", "turns"]);
  },
};

for (const [name, behaviour] of Object.entries(behaviours)) test(name, behaviour);
