// What the page says.

import assert from "node:assert/strict";
import { test } from "node:test";

import { EMPTY } from "../../../edge/static/unbroken/unbroken.js";
import { callWords, endingWords, isPending, questionWords, readable, statusWords } from "../../../edge/static/words.js";

const running = { turn_id: "t1", state: "running", items: [] };
const parked = (pending_call_ids, prompt) => ({ turn_id: "t1", state: "suspended", suspended: { reason: "input_required", pending_call_ids, prompt } });

const behaviours = {
  "what was sent is pending until a turn has begun after the one it was sent after"() {
    const begun = { ...EMPTY, turns: [{ turn_id: "t1" }] };
    assert.equal(isPending(EMPTY, undefined), false);
    assert.equal(isPending(EMPTY, { after: undefined }), true);
    assert.equal(isPending(begun, { after: undefined }), false);
    assert.equal(isPending(begun, { after: "t1" }), true);
  },
  "a call runs or waits until it has an outcome"() {
    assert.equal(callWords({}, false), "running");
    assert.equal(callWords({}, true), "waits for you");
    assert.equal(callWords({ outcome: "succeeded" }, true), "done");
    assert.match(callWords({ outcome: "unknown" }), /nobody knows/);
  },
  "a known reason says more than its outcome and an unknown one no less"() {
    assert.equal(callWords({ outcome: "not_executed", error: { reason: "DENIED" } }), "not run: you said no");
    assert.equal(callWords({ outcome: "not_executed", error: { reason: "ELSE" } }), "not run");
    assert.equal(callWords({ outcome: "failed", error: { reason: "DENIED" } }), "failed");
    assert.equal(callWords({ outcome: "of a later version" }), "ended");
  },
  "the one prompt of a turn is said for one question only"() {
    assert.equal(questionWords(parked(["c1"], "Sure?").suspended, { name: "pay" }), "Sure?");
    assert.match(questionWords(parked(["c1", "c2"], "Sure?").suspended, { name: "pay" }), /May “pay” run/);
    assert.match(questionWords(parked(["c1"]).suspended, { name: "ask", executor: "client" }), /What does “ask” answer/);
  },
  "an ending is said in the words of whoever knows most"() {
    const failed = { state: "finished", outcome: "failed", code: "runtime_timeout" };
    assert.equal(endingWords({ state: "finished", outcome: "completed" }), "");
    assert.equal(endingWords(running), "");
    assert.equal(endingWords({ state: "cancelling" }), "Stopping…");
    assert.match(endingWords(failed), /too long/);
    assert.equal(endingWords({ ...failed, user_message: "Out of paper." }), "Out of paper.");
    assert.equal(endingWords({ ...failed, code: "new" }), "This answer failed.");
  },
  "a status is said only after a while, but a stop at once"() {
    const call = { type: "tool_call", name: "report" };
    assert.equal(statusWords({ turn: running, quiet: false }), "");
    assert.equal(statusWords({ turn: running, quiet: true }), "Waiting for the answer…");
    assert.equal(statusWords({ turn: { ...running, items: [call] }, quiet: true }), "Still working: report…");
    assert.equal(statusWords({ turn: running, quiet: false, stopping: "t1" }), "Stopping…");
    assert.match(statusWords({ pending: {}, quiet: true }), /Trying again/);
    assert.equal(statusWords({ turn: parked(["c1"]), quiet: true }), "");
    assert.equal(statusWords({ quiet: true }), "");
  },
  "JSON is laid out and a string is its text"() {
    assert.equal(readable('"two\\nlines"'), "two\nlines");
    assert.equal(readable('{"a":[1,{}],"b":"x, {y}: \\u00e9"}'), '{\n  "a": [\n    1,\n    {}\n  ],\n  "b": "x, {y}: é"\n}');
  },
  "no digit of a number is lost, and what is no JSON stays as it is"() {
    assert.equal(readable("12345678901234567890.10"), "12345678901234567890.10");
    assert.equal(readable("[1e400]"), "[\n  1e400\n]");
    assert.equal(readable("half {"), "half {");
    assert.equal(readable(undefined), "");
  },
};

for (const [name, behaviour] of Object.entries(behaviours)) test(name, behaviour);
