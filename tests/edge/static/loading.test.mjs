// How a session is loaded: from its snapshot or anew, over a network that may be away and a server that may refuse.

import assert from "node:assert/strict";
import { test } from "node:test";

import { open } from "../../../edge/static/unbroken/unbroken.js";
import { PING, World, settle } from "./world.mjs";

const ID = "session-0123456789";
const SNAPSHOT = { session_id: ID, cursor: "0-0", first_seq: 1, turns: [], state: {} };

/** A session that asks for its snapshot. */
function loading() {
  const world = new World();
  const tab = world.tab();
  return { world, tab, session: open({ sessionId: ID, environment: tab.environment }) };
}

test("a session without an id is made, and begins empty", async () => {
  const world = new World();
  const session = open({ baseUrl: "https://agents.example", environment: world.tab().environment });
  const made = await world.take();
  assert.deepEqual([made.method, made.url, made.body], ["POST", "https://agents.example/v1/sessions", "{}"]);
  made.json({ session_id: ID, cursor: "0-0" }, { status: 201 });
  await session.ready;
  assert.deepEqual([session.id, session.view.turns, session.cursor], [ID, [], "0-0"]);
});

test("a session that is not there is refused, and nothing else is asked", async () => {
  const { world, session } = loading();
  session.subscribe(() => {});
  (await world.take()).problem(404, "session-not-found");
  await assert.rejects(session.ready, { code: "session-not-found", status: 404 });
  await assert.rejects(session.send("Hi"), { code: "session-not-found" });
  assert.equal(session.connection.state, "refused");
  await world.nothingAsked();
});

test("a snapshot is asked for until it is there, and every wait for it is told", async () => {
  const { world, tab, session } = loading();
  const told = [];
  session.subscribe(() => told.push(session.connection));
  assert.equal(session.connection.state, "connecting");
  (await world.take()).fail();
  await settle();
  tab.online = false;
  (await world.takeAfter(500)).problem(503);
  await settle();
  const states = told.map(({ state, attempt, retryAt, leader }) => [state, attempt, retryAt, leader]);
  const tried = ["connecting", 1, undefined, false];
  assert.deepEqual(states, [["waiting", 1, 500, false], tried, ["offline", 2, 1_500, false]]);
  assert.equal(told.at(-1).error.status, 503);
  (await world.takeAfter(1_000)).json(SNAPSHOT);
  await session.ready;
  (await world.take()).stream(PING);
  await settle();
  assert.deepEqual(session.connection, { state: "live", attempt: 0, leader: true });
});

test("a first load that waits is tried at once when somebody wants that", async () => {
  const { world, session } = loading();
  (await world.take()).fail();
  await world.nothingAsked();
  session.reconnect();
  (await world.take()).json(SNAPSHOT);
  await session.ready;
  assert.equal(world.timers, 0);
});

test("a session that is closed while it loads stays closed", async () => {
  const { world, session } = loading();
  await world.take();
  session.close();
  await settle();
  assert.equal(session.connection.state, "closed");
});

test("a first load that was refused is tried again when somebody wants that, and then followed", async () => {
  const { world, session } = loading();
  const { ready } = session;
  session.subscribe(() => session.connection.state === "refused" && session.reconnect()); // as soon as it is known
  (await world.take()).problem(401, "unauthenticated");
  const again = await world.take();
  await assert.rejects(ready, { code: "unauthenticated" });
  again.json(SNAPSHOT);
  await session.ready;
  (await world.take()).stream(PING);
  await settle();
  assert.equal(session.connection.state, "live");
});
