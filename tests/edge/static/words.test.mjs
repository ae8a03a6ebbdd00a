// What the page says.

import assert from "node:assert/strict";
import { test } from "node:test";

import { EMPTY } from "../../../edge/static/unbroken/unbroken.js";
import {
  answerOf,
  callWords,
  choicesOf,
  connectionWords,
  durationWords,
  endingWords,
  heardWords,
  isPending,
  questionWords,
  readable,
  refusalWords,
  statusWords,
  troubleWords,
} from "../../../edge/static/words.js";

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
  "a tool that runs in the browser may bring its own question"() {
    const call = { name: "pick", executor: "client", arguments_json: '{"prompt":"Which?"}' };
    assert.equal(questionWords(parked(["c1", "c2"]).suspended, call), "Which?");
    assert.match(questionWords(parked(["c1"]).suspended, { ...call, arguments_json: "[" }), /What does “pick” answer/);
    assert.match(questionWords(parked(["c1"]).suspended, { ...call, executor: "runtime" }), /May “pick” run/);
  },
  "an answer has the type that is wanted, if it can have it"() {
    const asks = (schema, calls = ["c1"]) => ({ pending_call_ids: calls, response_schema_json: schema });
    assert.equal(answerOf(asks(undefined), "7"), "7");
    assert.equal(answerOf(asks('{"type":"string"}'), "7"), "7");
    assert.equal(answerOf(asks('{"type":"integer"}'), "7"), 7);
    assert.equal(answerOf(asks('{"type":"integer"}'), "seven"), "seven");
    assert.equal(answerOf(asks('{"type":"integer"}', ["c1", "c2"]), "7"), "7");
    assert.deepEqual(choicesOf(asks('{"enum":["a",1]}')), ["a", 1]);
    assert.deepEqual(choicesOf(asks('{"type":"boolean"}')), [true, false]);
    assert.equal(choicesOf(asks("no JSON")), undefined);
    assert.equal(choicesOf(asks("null")), undefined);
  },
  "a lost connection is said in words, with a comfort for who waits for an answer"() {
    assert.equal(connectionWords({ state: "live" }, false), "Connected");
    assert.equal(connectionWords({ state: "live" }, true), "Saving is delayed");
    assert.equal(connectionWords({ state: "connecting", attempt: 0 }), "Connecting…");
    assert.equal(connectionWords({ state: "connecting", attempt: 2 }), "Reconnecting…");
    assert.equal(troubleWords({ state: "live", attempt: 0 }, true), "");
    assert.equal(troubleWords({ state: "connecting", attempt: 0 }, true), "");
    assert.equal(troubleWords({ state: "connecting", attempt: 1 }, false), "There is no connection.");
    assert.match(troubleWords({ state: "offline", attempt: 1 }, true), /offline.*will be here/);
    assert.equal(troubleWords({ state: "refused", error: new Error("No access") }, true), "No access");
    assert.match(troubleWords({ state: "refused", error: { code: "token-expired" } }, true), /sign-in has expired/);
  },
  "a refusal says what it means to a person, or else what the server said"() {
    assert.match(refusalWords({ code: "unauthenticated", message: "?" }), /no sign-in/);
    assert.equal(refusalWords({ code: "tool-call-not-found", message: "No call waits." }), "No call waits.");
    assert.equal(refusalWords({ code: "", message: "HTTP 403" }), "HTTP 403");
  },
  "an end or a question is heard once, and nothing else is"() {
    const done = { ...running, state: "finished", outcome: "completed" };
    assert.equal(heardWords(running, done), "The answer is complete.");
    assert.equal(heardWords(undefined, done), "The answer is complete.");
    assert.equal(heardWords(running, { ...done, outcome: "cancelled" }), "Stopped.");
    assert.equal(heardWords(running, parked(["c1"])), "The agent waits for you.");
    assert.equal(heardWords(done, { ...done, items: [] }), undefined);
    assert.equal(heardWords(parked(["c1"]), running), undefined);
    assert.equal(heardWords(undefined, undefined), undefined);
  },
  "a duration is as exact as a person wants it"() {
    assert.equal(durationWords(undefined), "");
    assert.equal(durationWords(3), "");
    assert.equal(durationWords(1_240), "1.2 s");
    assert.equal(durationWords(9_960), "10 s");
    assert.equal(durationWords(59_700), "1 min 0 s");
    assert.equal(durationWords(125_000), "2 min 5 s");
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
