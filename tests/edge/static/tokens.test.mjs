// Tokens that are refused, expire or cannot be had, amid a stream: when another one is asked for, and when no more.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Api } from "../../../edge/static/unbroken/api.js";
import { STALL_MS } from "../../../edge/static/unbroken/stream.js";
import { reader } from "./stream_reader.mjs";
import { PING, World, block, start, token } from "./world.mjs";

test("a refused token is fetched anew once, and then the refusal stands", async () => {
  const asked = [];
  const it = reader({ token: ({ refresh }) => asked.push(refresh) && `token ${asked.length}` });
  const first = await it.world.take();
  assert.equal(first.headers.Authorization, "Bearer token 1");
  first.problem(401, "unauthenticated");
  const second = await it.world.take();
  assert.equal(second.headers.Authorization, "Bearer token 2");
  second.problem(401, "unauthenticated");
  await it.world.pass(600_000);
  await it.world.nothingAsked();
  assert.equal(it.error.code, "unauthenticated");
  assert.deepEqual(asked, [false, true]);
});

test("a fixed token that is refused is not tried again", async () => {
  const it = reader({ token: "abc" });
  (await it.world.take()).problem(401);
  await it.world.pass(600_000);
  await it.world.nothingAsked();
});

test("a token that is about to expire is fetched anew, and the stream goes on with it", async () => {
  const asked = [];
  const it = reader({ token: ({ refresh }) => asked.push(refresh) && `token ${asked.length}` });
  (await it.world.take()).stream(start(1), block("reauth", { in_ms: 30_000 }));
  await it.world.pass(0);
  const second = await it.world.take();
  assert.deepEqual([second.cursor, second.headers.Authorization], ["1-1", "Bearer token 2"]);
  assert.deepEqual(asked, [false, true]);
});

test("a token that is about to expire and has no successor is used to its end, and then refused", async () => {
  const asked = [];
  const it = reader({ token: ({ refresh }) => asked.push(refresh) && "stale" });
  const first = await it.world.take();
  first.stream(start(1), block("reauth", { in_ms: 30_000 })).send(token(2));
  await it.world.nothingAsked();
  assert.deepEqual([it.events.at(-1), first.aborted, asked], ["token 1-2", false, [false, true]]);
  first.send(block("reconnect", { reason: "token_expired" }, undefined, 250));
  (await it.world.takeAfter(250)).problem(401, "token-expired");
  (await it.world.take()).problem(401, "token-expired");
  await it.world.pass(600_000);
  await it.world.nothingAsked();
  assert.deepEqual([it.error.code, asked], ["token-expired", [false, true, true]]);
});

for (const [what, token] of [["fixed", "abc"], ["unreachable", ({ refresh }) => refresh ? Promise.reject() : "abc"]]) {
  test(`a stream whose token is about to expire goes on where another one is ${what}`, async () => {
    const it = reader({ token });
    const first = await it.world.take();
    first.stream(start(1), block("reauth", { in_ms: 30_000 }));
    await it.world.nothingAsked();
    assert.equal(first.aborted, false);
  });
}

test("two streams that are warned of one token fetch one other", async () => {
  const asked = [];
  const { environment } = new World().tab();
  const api = new Api({ token: ({ refresh }) => asked.push(refresh), environment });
  void api.request("/one");
  void api.request("/two");
  const used = api.token;
  assert.deepEqual(await Promise.all([api.renew(used), api.renew(used)]), [true, true]);
  assert.deepEqual(asked, [false, true]);
});

test("tokens that are all about to expire are not fetched ever so often", async () => {
  let made = 0;
  const it = reader({ token: () => `token ${(made += 1)}` });
  const warn = (connection) => connection.stream(PING, block("reauth", { in_ms: 30_000 }));
  warn(await it.world.take());
  await it.world.pass(0);
  warn(await it.world.take());
  for (const ms of [500, 1_000, 2_000]) warn(await it.world.takeAfter(ms));
});

test("a token that cannot be fetched just now is asked for again", async () => {
  const asked = [];
  const token = ({ refresh }) => asked.push(refresh) > 2 ? "token" : Promise.reject(new Error("offline"));
  const it = reader({ token });
  await it.world.pass(500 + 1_000);
  assert.equal((await it.world.take()).headers.Authorization, "Bearer token");
  assert.deepEqual(asked, [false, false, false]); // there was none that could have been refused
});

test("a token that cannot be fetched for no reason at all is asked for again, and not at once", async () => {
  let failures = 1;
  const it = reader({ token: async () => failures-- > 0 ? Promise.reject() : "token" });
  assert.equal((await it.world.takeAfter(500)).headers.Authorization, "Bearer token");
});

test("a token that never comes is silence", async () => {
  const it = reader({ token: () => new Promise(() => {}) });
  await it.world.pass(STALL_MS);
  assert.equal(it.states.at(-1), "stalled");
});
