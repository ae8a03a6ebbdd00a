// A session that is loaded: what it shows and sends, what a loop over it gets, and what happens when the server refuses.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ProblemError, open } from "../../../edge/static/unbroken/unbroken.js";
import { CAUGHT_UP, PING, World, block, done, settle, start, token } from "./world.mjs";

const ID = "session-0123456789";
const SNAPSHOT = { session_id: ID, cursor: "0-0", first_seq: 1, turns: [], state: {} };

/** A session that has loaded its snapshot. */
async function opened({ snapshot = SNAPSHOT, ...options } = {}) {
  const world = new World();
  const tab = world.tab();
  const session = open({ sessionId: ID, environment: tab.environment, ...options });
  (await world.take()).json(snapshot);
  await session.ready;
  return { world, tab, session };
}

/** What a subscriber has seen, and the connection that it made the session open. */
async function watched({ world, session }) {
  const views = [];
  session.subscribe(() => session.view === views.at(-1) || views.push(session.view));
  return { views, connection: await world.take() };
}

async function following(options) {
  const it = await opened(options);
  return { ...it, ...(await watched(it)) };
}

const textIn = (view) => view.turns.at(-1)?.items.map((item) => item.text).join("");

test("a view is its snapshot until somebody subscribes, and goes on from its cursor", async () => {
  const turns = [{ turn_id: "t1", attempt: 1, input: [], state: "running", items: [] }];
  const { world, session } = await opened({ snapshot: { ...SNAPSHOT, cursor: "1-1", turns } });
  await world.nothingAsked();
  session.subscribe(() => {});
  const connection = await world.take();
  assert.deepEqual([connection.url, connection.cursor], [`/v1/sessions/${ID}/events?until=follow`, "1-1"]);
  connection.stream(PING, token(2, "Hi"));
  await settle();
  assert.equal(textIn(session.view), "Hi");
});

test("subscribers are told once for all that came together", async () => {
  const { views, connection } = await following();
  connection.stream(PING);
  await settle();
  connection.send([start(1), ...Array.from({ length: 2_000 }, (_, n) => token(n + 2))].join(""));
  await settle();
  assert.equal(views.length, 2);
  assert.equal(textIn(views[1]).length, 2_000);
});

test("a subscriber that left is told no more, and what stays the same is not told", async () => {
  const { session, connection } = await following();
  let told = 0;
  const leave = session.subscribe(() => (told += 1));
  connection.stream(PING, start(1));
  await settle();
  const before = told;
  connection.send(start(1), CAUGHT_UP);
  await settle();
  assert.equal(told, before);
  leave();
  connection.send(token(2));
  await settle();
  assert.equal(told, before);
});

test("a subscriber that throws harms neither the stream nor the other subscribers", async () => {
  const { world, session } = await opened();
  session.subscribe(() => {
    throw new Error("the page's own");
  });
  const { views, connection } = await watched({ world, session });
  connection.stream(PING, start(1));
  await settle();
  connection.send(token(2, "Hi"));
  await settle();
  assert.deepEqual([textIn(session.view), views.at(-1)], ["Hi", session.view]);
  assert.ok(world.raised.every(({ message }) => message === "the page's own") && world.raised.length > 1);
});

test("a log that goes another way than ours is read again from its start", async () => {
  const { world, session, connection } = await following({ snapshot: { ...SNAPSHOT, cursor: "1-9" } });
  connection.stream(PING, block("rewind", { to: 3 }, "1-3"));
  const again = await world.takeAfter(500);
  assert.equal(again.cursor, "0-0");
  again.stream(PING, start(1), token(2, "Hi"));
  await settle();
  assert.equal(textIn(session.view), "Hi");
});

test("delayed saving is told for as long as the connection that said so", async () => {
  const { world, session, connection } = await following();
  connection.stream(PING, block("status", { state: "degraded" }));
  await settle();
  assert.equal(session.view.degraded, true);
  connection.end();
  (await world.takeAfter(500)).stream(PING);
  await settle();
  assert.equal(session.view.degraded, false);
});

test("a refused stream is tried again when somebody wants to", async () => {
  const { world, tab, session, connection } = await following();
  connection.problem(401, "unauthenticated");
  await world.pass(600_000);
  for (const sign of ["online", "visible", "restored"]) tab.sign(sign);
  await world.nothingAsked();
  assert.equal(session.connection.state, "refused");
  assert.ok(session.connection.error instanceof ProblemError);
  session.reconnect();
  (await world.take()).stream(PING);
  await settle();
  assert.equal(session.connection.state, "live");
});

test("a live connection is made anew when somebody wants that", async () => {
  const { world, session, connection } = await following();
  connection.stream(PING, start(1));
  await settle();
  session.reconnect();
  assert.equal((await world.take()).cursor, "1-1");
  assert.ok(connection.aborted);
});

test("a session that is closed by who is told of its wait waits no more", async () => {
  const { world, session, connection } = await following();
  session.subscribe(() => session.connection.state === "waiting" && session.close());
  connection.fail();
  await world.nothingAsked();
  assert.equal(world.timers, 0);
});

test("a turn is sent until the server has it, always with the same key and body", async () => {
  const { world, session } = await opened({ token: ({ refresh }) => (refresh ? "new" : "old") });
  const sent = session.send("Hi", { agent: "helper", onDisconnect: "cancel" });
  const posts = [await world.take()];
  posts[0].fail();
  posts.push(await world.takeAfter(500));
  posts[1].problem(503, "journal-unavailable", { "Retry-After": "2" });
  posts.push(await world.takeAfter(3_000));
  posts[2].problem(401, "unauthenticated");
  posts.push(await world.take());
  posts[3].reply(new Response("<h1>Hotel</h1>"));
  posts.push(await world.takeAfter(2_000));
  const headers = { "Idempotency-Replayed": "true" };
  posts[4].json({ session_id: ID, turn_id: "t1", cursor: "1-1" }, { status: 202, headers });
  assert.deepEqual(await sent, { turnId: "t1", cursor: "1-1", replayed: true });
  assert.deepEqual(new Set(posts.map((post) => post.headers["Idempotency-Key"])).size, 1);
  assert.match(posts[0].headers["Idempotency-Key"], /^[A-Za-z0-9_-]{16,128}$/);
  for (const { method, url, body } of posts) {
    assert.deepEqual([method, url], ["POST", `/v1/sessions/${ID}/turns`]);
    assert.deepEqual(JSON.parse(body), { input: "Hi", agent: "helper", on_disconnect: "cancel" });
  }
  assert.deepEqual(posts.map((post) => post.headers.Authorization?.slice(7)), ["old", "old", "old", "new", "new"]);
});

test("requests that are refused together ask for one token", async () => {
  let asked = 0;
  const { world, session } = await opened({ token: () => `token ${(asked += 1)}` });
  session.stop("t1");
  const first = await world.take();
  session.stop("t2");
  const second = await world.take();
  first.problem(401);
  const again = await world.take();
  second.problem(401);
  const tokens = [again, await world.take()].map((call) => call.headers.Authorization);
  assert.deepEqual(tokens, ["Bearer token 2", "Bearer token 2"]);
  assert.equal(asked, 2);
});

test("two turns have two keys, and one that is sent again after a reload keeps its own", async () => {
  const { world, session } = await opened();
  const keys = [];
  for (const options of [undefined, undefined, { key: "kept-0123456789abc" }]) {
    session.send("Hi", options);
    keys.push((await world.take()).headers["Idempotency-Key"]);
  }
  assert.equal(new Set(keys).size, 3);
  assert.equal(keys[2], "kept-0123456789abc");
});

test("a turn that nobody answers is sent again with its key, sooner when the network comes back", async () => {
  const { world, tab, session } = await opened();
  const sent = session.send("Hi");
  const lost = await world.take();
  await world.pass(25_000);
  const again = await world.takeAfter(500);
  tab.sign("online");
  const third = await world.takeAfter(1_000);
  assert.ok(lost.aborted && again.aborted);
  third.json({ session_id: ID, turn_id: "t1", cursor: "1-1" }, { status: 202 });
  assert.equal((await sent).turnId, "t1");
  assert.equal(new Set([lost, again, third].map(({ headers }) => headers["Idempotency-Key"])).size, 1);
  assert.equal(world.timers, 0);
});

test("a turn that the server refuses is not sent again", async () => {
  const { world, session } = await opened();
  const sent = session.send("Hi");
  (await world.take()).json({ type: "urn:unbroken:problem:turn-in-progress", title: "Busy", turn_id: "t0" }, { status: 409 });
  await assert.rejects(sent, { name: "ProblemError", status: 409, code: "turn-in-progress", turnId: "t0", message: "Busy" });
  await world.nothingAsked();
});

test("stopping goes to the open turn, and a decision to its call", async () => {
  const turns = [{ turn_id: "t1", attempt: 1, input: [], state: "running", items: [] }];
  const { world, session } = await opened({ snapshot: { ...SNAPSHOT, turns } });
  const stopped = session.stop();
  const cancel = await world.take();
  assert.equal(cancel.url, `/v1/sessions/${ID}/turns/t1/cancel`);
  cancel.json({ state: "cancelling" }, { status: 202 });
  assert.deepEqual(await stopped, { state: "cancelling" });
  const decided = session.decide("t1", "c1", { approve: true });
  const decision = await world.take();
  assert.deepEqual([decision.url, decision.body], [`/v1/sessions/${ID}/turns/t1/tool-calls/c1`, '{"approve":true}']);
  decision.json({ state: "accepted" }, { status: 202 });
  assert.deepEqual(await decided, { state: "accepted" });
});

test("stopping where nothing runs asks nobody", async () => {
  const { world, session } = await opened();
  assert.deepEqual(await session.stop(), { state: "done" });
  await world.nothingAsked();
});

test("a loop that fails amid an event gets it again, for it was not taken in", async () => {
  const { world, session } = await opened();
  const heard = [];
  const loop = async (failAt) => {
    for await (const { id } of session) {
      heard.push(id);
      if (id === failAt) throw new Error("cannot take this in");
    }
  };
  const failed = loop("1-2");
  const first = await world.take();
  first.stream(PING, start(1), token(2), token(3));
  await assert.rejects(failed, { message: "cannot take this in" });
  assert.ok(first.aborted);
  assert.equal(session.cursor, "1-1");
  loop();
  const second = await world.take();
  assert.equal(second.cursor, "1-1");
  second.stream(PING, token(2), token(3));
  await settle();
  assert.deepEqual(heard, ["1-1", "1-2", "1-2", "1-3"]);
});

test("a connection that breaks while an event is taken in is resumed after it, once it is", async () => {
  const { world, session } = await opened();
  let taken;
  const heard = [];
  const read = async () => {
    for await (const { id } of session) {
      heard.push(id);
      await new Promise((resolve) => (taken = resolve));
    }
  };
  read();
  const first = await world.take();
  first.stream(start(1) + token(2));
  await settle();
  first.fail();
  await world.pass(600_000);
  await world.nothingAsked(); // it waits for its reader, and holds nothing against it
  taken();
  await settle();
  taken();
  assert.equal((await world.takeAfter(500)).cursor, "1-2");
  assert.deepEqual(heard, ["1-1", "1-2"]);
});

test("a loop whose connection is given up while an event is taken in does not listen to it again", async () => {
  const { world, tab, session } = await opened();
  let taken;
  const read = async () => {
    for await (const _ of session) await new Promise((resolve) => (taken = resolve));
  };
  world.deaf = true;
  read();
  (await world.take()).stream(start(1));
  await settle();
  tab.sign("online");
  taken();
  assert.equal((await world.take()).cursor, "1-1");
});

test("a loop may begin where an earlier page left off, and end with its turn", async () => {
  const { world, session } = await opened();
  const heard = [];
  const read = async () => {
    for await (const { type, id } of session.events({ after: "1-7", turnId: "t1" })) heard.push(`${type} ${id}`);
  };
  const ended = read();
  const first = await world.take();
  assert.equal(first.cursor, "1-7");
  const earlier = block("done", { turn_id: "t0", outcome: "completed" }, "1-8");
  first.stream(PING, earlier, token(9), CAUGHT_UP, done(10));
  await ended;
  assert.deepEqual(heard, ["done 1-8", "token 1-9", "caught_up 1-9", "done 1-10"]);
  assert.ok(first.aborted);
});

test("loops at different places do not move each other", async () => {
  const { world, session } = await opened();
  const read = async (after) => {
    for await (const _ of session.events({ after }));
  };
  read("1-7");
  const ahead = await world.take();
  read("1-1");
  const behind = await world.take();
  behind.stream(PING, token(2));
  await settle();
  ahead.stream(PING, token(8));
  await settle();
  ahead.fail();
  assert.equal((await world.takeAfter(500)).cursor, "1-8");
  behind.fail();
  assert.equal((await world.takeAfter(500)).cursor, "1-2");
});

test("a refused loop throws", async () => {
  const { world, session } = await opened();
  const next = session.events().next();
  (await world.take()).problem(410, "session-expired");
  await assert.rejects(next, { code: "session-expired" });
});

test("closing ends the stream, the loops and what was being sent", async () => {
  const { world, session, connection } = await following();
  connection.stream(PING);
  const next = session.events().next();
  const loop = await world.take();
  const sent = session.send("Hi");
  (await world.take()).fail();
  await settle();
  session.close();
  assert.deepEqual(await next, { done: true, value: undefined });
  await assert.rejects(sent, { message: "the session was closed" });
  assert.ok(connection.aborted && loop.aborted);
  assert.equal(session.connection.state, "closed");
  assert.equal(world.timers, 0);
});
