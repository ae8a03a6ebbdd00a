// A stream over connections that break in every way: when the next one is made, from where, and what is handed on.

import assert from "node:assert/strict";
import { test } from "node:test";

import { STALL_MS } from "../../../edge/static/unbroken/stream.js";
import { MOST_MS, decideWait } from "../../../edge/static/unbroken/waiting.js";
import { PATH, reader } from "./stream_reader.mjs";
import { CAUGHT_UP, PING, World, block, done, settle, start, token } from "./world.mjs";

test("a clean end without a terminal event is a cut: the reader comes back with its cursor", async () => {
  const it = reader();
  const first = await it.world.take();
  assert.equal(first.url, `${PATH}?until=follow`);
  assert.equal(first.cursor, "0-0");
  first.stream(PING, start(1), token(2)).end();
  const second = await it.world.takeAfter(500);
  assert.equal(second.cursor, "1-2");
  second.stream(PING, token(3));
  await settle();
  assert.deepEqual(it.events, ["turn_start 1-1", "token 1-2", "token 1-3"]);
  assert.deepEqual(it.states, ["connecting", "live", "waiting", "connecting", "live"]);
});

test("waits have full jitter: any time from none to a bound that doubles up to the longest", async () => {
  const waits = (random) => [1, 2, 3, 4, 5, 6, 99].map((failures) => decideWait({ failures, random: () => random }));
  assert.deepEqual(waits(0), [0, 0, 0, 0, 0, 0, 0]);
  assert.deepEqual(waits(1), [1_000, 2_000, 4_000, 8_000, 16_000, MOST_MS, MOST_MS]);
  assert.deepEqual(waits(0.5), [500, 1_000, 2_000, 4_000, 8_000, MOST_MS / 2, MOST_MS / 2]);
});

test("a wait is never so long that a browser's timer would be over at once", async () => {
  assert.equal(decideWait({ failures: 1, toldMs: 10 ** 12, random: () => 0.5 }), 2 ** 31 - 1);
});

test("a server that cannot be reached is tried less and less often, until an event comes", async () => {
  const it = reader();
  for (const ms of [0, 500, 1_000, 2_000]) (await it.world.takeAfter(ms)).fail();
  (await it.world.takeAfter(4_000)).stream(PING, start(1)).end();
  (await it.world.takeAfter(500)).fail();
});

test("a connection that says nothing and ends at once counts as a failure", async () => {
  const it = reader();
  for (const ms of [0, 500, 1_000, 2_000]) (await it.world.takeAfter(ms)).stream(PING, CAUGHT_UP).end();
});

test("a connection that lived for long is no failure, even if nothing happened", async () => {
  const it = reader();
  for (let round = 0; round < 5; round += 1) {
    const connection = await it.world.takeAfter(round && 500);
    connection.stream(PING, CAUGHT_UP);
    await it.world.pass(MOST_MS);
    connection.end();
  }
});

for (const sign of ["online", "visible", "restored"]) {
  test(`a wait is over when the page is ${sign}`, async () => {
    const it = reader();
    it.world.chance = 1;
    for (let failure = 0; failure < 6; failure += 1) {
      (await it.world.take()).fail();
      await it.world.nothingAsked();
      it.tab.sign(sign);
    }
    await it.world.take();
  });
}

test("a network that goes away ends no wait", async () => {
  const it = reader();
  (await it.world.take()).fail();
  await settle();
  it.tab.sign("offline");
  await it.world.takeAfter(500);
});

for (const sign of ["online", "restored"]) {
  test(`a connection is made anew when the page is ${sign}, for the old one is dead`, async () => {
    const it = reader();
    const first = await it.world.take();
    first.stream(PING, start(1));
    await settle();
    it.tab.sign(sign);
    const second = await it.world.take();
    assert.ok(first.aborted);
    assert.equal(second.cursor, "1-1");
  });
}

test("a page that is left has no connection and makes none until it is restored", async () => {
  const it = reader();
  const first = await it.world.take();
  first.stream(PING, start(1));
  await settle();
  it.tab.sign("left");
  await it.world.nothingAsked();
  assert.ok(first.aborted);
  assert.equal(it.world.timers, 0);
  it.tab.sign("visible");
  await it.world.nothingAsked();
  it.tab.sign("restored");
  assert.equal((await it.world.take()).cursor, "1-1");
  assert.deepEqual(it.states, ["connecting", "live", "connecting"]);
});

test("looking at the page again leaves a live connection alone", async () => {
  const it = reader();
  (await it.world.take()).stream(PING, start(1));
  await settle();
  it.tab.sign("visible");
  await it.world.nothingAsked();
});

test("looking at the page again ends a connection that was silent while the device slept", async () => {
  const it = reader();
  const first = await it.world.take();
  first.stream(PING, start(1));
  await settle();
  it.tab.frozen = true;
  await it.world.pass(3_600_000);
  assert.equal(first.aborted, false);
  it.tab.sign("visible");
  assert.equal((await it.world.take()).cursor, "1-1");
  assert.ok(first.aborted);
});

test("a network that goes away ends the connection at once, and the reader waits for it", async () => {
  const it = reader();
  const first = await it.world.take();
  first.stream(PING);
  await settle();
  it.tab.online = false;
  it.tab.sign("offline");
  await settle();
  assert.ok(first.aborted);
  assert.equal(it.states.at(-1), "offline");
  it.tab.online = true;
  it.tab.sign("online");
  (await it.world.take()).stream(PING);
});

test("a connection without a byte is taken for dead, and pings are bytes", async () => {
  const it = reader();
  const first = await it.world.take();
  first.stream(PING);
  for (let ping = 0; ping < 60; ping += 1) {
    await it.world.pass(10_000);
    first.send(PING);
  }
  await it.world.pass(STALL_MS - 1);
  assert.equal(first.aborted, false);
  await it.world.pass(1);
  assert.ok(first.aborted);
  assert.equal(it.states.at(-1), "stalled");
  await it.world.takeAfter(500);
});

test("headers that never come are silence as well", async () => {
  const it = reader();
  const first = await it.world.take();
  await it.world.pass(STALL_MS);
  assert.ok(first.aborted);
  await it.world.takeAfter(500);
});

test("the latest connection wins: what an older one still says is lost, in whichever order", async () => {
  const world = new World();
  world.deaf = true;
  const it = reader({ world });
  const first = await world.take();
  first.stream(PING, start(1));
  await settle();
  it.tab.sign("wanted");
  const second = await world.take();
  first.send(token(2, "late"), token(3, "later"));
  await settle();
  second.stream(PING, token(2));
  first.send(token(4, "never"));
  await settle();
  assert.deepEqual(it.events, ["turn_start 1-1", "token 1-2"]);
  assert.equal(it.cursor, "1-2");
});

test("headers that arrive when they are wanted no more start nothing", async () => {
  const world = new World();
  world.deaf = true;
  const it = reader({ world });
  const first = await world.take();
  it.tab.sign("wanted");
  const second = await world.take();
  first.stream(PING, start(1));
  await settle();
  assert.deepEqual([it.events, it.states], [[], ["connecting", "connecting"]]);
  second.stream(start(1));
  await settle();
  assert.deepEqual(it.events, ["turn_start 1-1"]);
});

test("an event that was had is not handed on again, and one that is missing makes the reader come back", async () => {
  const it = reader();
  const first = await it.world.take();
  first.stream(start(1), token(2), token(2), start(1), token(3), token(5), token(6));
  const second = await it.world.takeAfter(500);
  assert.ok(first.aborted);
  assert.deepEqual(it.events, ["turn_start 1-1", "token 1-2", "token 1-3"]);
  assert.equal(second.cursor, "1-3");
});

test("after a rewind and a reset, events are counted from where those say", async () => {
  const it = reader();
  const first = await it.world.take();
  first.stream(start(1), token(2), token(3), block("rewind", { to: 2 }, "1-2"), token(3, "y", 2));
  first.send(block("reset", { reason: "expired", first_seq: 9 }, "0-8"), start(9, 2));
  await settle();
  const heard = ["turn_start 1-1", "token 1-2", "token 1-3", "rewind 1-2", "token 2-3", "reset 0-8", "turn_start 2-9"];
  assert.deepEqual(it.events, heard);
});

test("what is no JSON, or comes from somebody else's server, is a cut like any other", async () => {
  const it = reader();
  (await it.world.take()).stream(start(1), "id: 1-2\nevent: token\ndata: {\n\n");
  const second = await it.world.takeAfter(500);
  second.reply(new Response("<h1>Hotel</h1>", { headers: { "Content-Type": "text/html" } }));
  const third = await it.world.takeAfter(1_000);
  third.reply(new Response(null, { status: 204 }));
  assert.equal((await it.world.takeAfter(2_000)).cursor, "1-1");
});

test("a server that says when to come back is taken at its word", async () => {
  const it = reader();
  (await it.world.take()).stream(start(1), block("reconnect", { reason: "rolling" }, undefined, 250));
  (await it.world.takeAfter(250)).problem(429, "too-many-streams", { "Retry-After": "5" });
  (await it.world.takeAfter(5_000 + 1_000)).problem(503, "overloaded", { "Retry-After": "Thu, 01 Jan 1970 00:00:10 GMT" });
  await it.world.takeAfter(10_000 - 6_250 + 2_000);
});

test("one that only ever says to come back is not asked ever so often", async () => {
  const it = reader();
  const away = () => block("reconnect", { reason: "rolling" }, undefined, 50);
  for (const ms of [0, 50, 50 + 500, 50 + 1_000]) (await it.world.takeAfter(ms)).stream(PING, away());
});

for (const status of [408, 425, 429, 500, 502, 503, 504]) {
  test(`a ${status} passes: the reader comes back`, async () => {
    const it = reader();
    (await it.world.take()).problem(status);
    await it.world.takeAfter(500);
  });
}

for (const status of [400, 403, 404, 410]) {
  test(`a ${status} stands: nobody asks again`, async () => {
    const it = reader();
    (await it.world.take()).problem(status, "session-not-found");
    await it.world.pass(600_000);
    await it.world.nothingAsked();
    assert.deepEqual([it.error.status, it.error.code], [status, "session-not-found"]);
    assert.equal(it.world.timers, 0);
  });
}

test("a refusal that is no JSON stands as well", async () => {
  const it = reader();
  (await it.world.take()).reply(new Response("<h1>Forbidden</h1>", { status: 403 }));
  await it.world.pass(600_000);
  await it.world.nothingAsked();
  assert.deepEqual([it.error.status, it.error.code], [403, ""]);
});

test("no stream comes out of a cache", async () => {
  assert.equal((await reader().world.take()).cache, "no-store");
});

test("a reader that follows comes back after a clean end, even right after the end of a turn", async () => {
  const it = reader();
  (await it.world.take()).stream(start(1), CAUGHT_UP, done(2)).end();
  assert.equal((await it.world.takeAfter(500)).cursor, "1-2");
});

test("until the turn's end: the terminal event and the stream's end are the end", async () => {
  const it = reader({ until: "turn_end" });
  const first = await it.world.take();
  assert.equal(first.url, `${PATH}?until=turn_end`);
  first.stream(start(1), CAUGHT_UP, token(2), done(3)).end();
  await it.ended;
  assert.ok(it.over);
  assert.equal(it.world.timers, 0);
});

test("until the turn's end: an older turn's end in a replay that was cut is not the end", async () => {
  const it = reader({ until: "turn_end" });
  (await it.world.take()).stream(start(1), done(2)).end();
  const second = await it.world.takeAfter(500);
  assert.equal(second.cursor, "1-2");
  second.reply(new Response(null, { status: 204 }));
  await it.ended;
  assert.ok(it.over);
});

test("closing gives everything back", async () => {
  const it = reader();
  const first = await it.world.take();
  first.stream(start(1));
  await settle();
  it.close();
  await it.ended;
  assert.ok(first.aborted && it.over);
  assert.deepEqual([it.world.timers, it.tab.listeners.size], [0, 0]);
});

test("closing ends a wait as well", async () => {
  const it = reader();
  (await it.world.take()).fail();
  await settle();
  it.close();
  await it.ended;
  assert.deepEqual([it.world.timers, it.tab.listeners.size], [0, 0]);
});
