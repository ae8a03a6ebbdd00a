// The lab's counting.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Tally } from "./static/tally.js";

function told(...events) {
  const tally = new Tally(0);
  for (const [run, number, at = 0] of events) tally.show(run, number, at);
  return tally;
}

test("an answer that comes once and whole has nothing to count", () => {
  const tally = told(["a", 1], ["a", 2], ["a", 3]);
  tally.end(10);
  assert.deepEqual(tally.counts(10, { a: 3 }), { twice: 0, lost: 0, takenBack: 0, silentMs: 0, isDeaf: false });
});

test("what comes again in another run is seen twice, and the rest of the first run is lost", () => {
  const tally = told(["a", 1], ["a", 2]);
  tally.begin("b", 5);
  for (const number of [1, 2, 3]) tally.show("b", number, 6);
  const { twice, lost } = tally.counts(6, { a: 3, b: 3 });
  assert.deepEqual([twice, lost], [2, 1]);
});

test("what is yet to come is not lost, but what was passed over is", () => {
  assert.equal(told(["a", 1], ["a", 2]).counts(0, { a: 9 }).lost, 0);
  assert.equal(told(["a", 1], ["a", 4]).counts(0, { a: 9 }).lost, 2);
});

test("at the end everything that was said is due", () => {
  const tally = told(["a", 1]);
  tally.end(0);
  assert.equal(tally.counts(0, { a: 9 }).lost, 8);
});

test("what did not survive is replaced under its number, and that is not seen twice", () => {
  const tally = told(["log", 1], ["log", 2], ["log", 3]);
  tally.rewind("log", [2, 3], 4);
  tally.show("log", 2, 5);
  assert.deepEqual(tally.counts(5, {}), { twice: 0, lost: 0, takenBack: 2, silentMs: 0, isDeaf: false });
});

test("what was withdrawn is neither lost nor seen twice", () => {
  const tally = told(["log", 1], ["log", 2]);
  tally.withdraw(2);
  tally.show("log", 3, 0);
  tally.end(0);
  assert.deepEqual(tally.counts(0, { log: 3 }), { twice: 0, lost: 0, takenBack: 2, silentMs: 0, isDeaf: false });
});

test("silence counts from its second second, and ends with the answer", () => {
  const tally = told(["a", 1, 500], ["a", 2, 3_500]);
  assert.equal(tally.counts(3_500, {}).silentMs, 2_000);
  assert.equal(tally.counts(6_000, {}).silentMs, 3_500);
  tally.end(6_000);
  assert.equal(tally.counts(99_000, {}).silentMs, 3_500);
});

test("a reader is deaf when news has been said for a while and does not come", () => {
  const tally = told(["a", 1, 0]);
  assert.equal(tally.counts(4_000, { a: 1 }).isDeaf, false);
  assert.equal(tally.counts(2_000, { a: 2 }).isDeaf, false);
  assert.equal(tally.counts(4_000, { a: 2 }).isDeaf, true);
  tally.show("a", 2, 4_000);
  assert.equal(tally.counts(9_000, { a: 2 }).isDeaf, false);
});

test("the timeline falls where something is taken back or begun again", () => {
  const tally = told(["a", 1, 1], ["a", 2, 2]);
  tally.begin("b", 3);
  assert.deepEqual(tally.points.map((point) => point.number), [0, 1, 2, 0]);
});
