// Many tabs of one session: one stream, the same view in all, and another leader when the leading tab goes.

import assert from "node:assert/strict";
import { test } from "node:test";

import { isBefore } from "../../../edge/static/unbroken/cursor.js";
import { open } from "../../../edge/static/unbroken/unbroken.js";
import { PING, World, block, settle, start, token } from "./world.mjs";

const ID = "session-0123456789";
const EMPTY = { session_id: ID, cursor: "0-0", first_seq: 1, turns: [], state: {} };

/** One more tab that shows the session, with its snapshot loaded. */
async function join(world, { snapshot = EMPTY, ...kind } = {}) {
  const tab = world.tab({ shares: true, ...kind });
  const session = open({ sessionId: ID, environment: tab.environment });
  session.subscribe(() => {});
  const asked = await world.take();
  assert.equal(asked.url, `/v1/sessions/${ID}`);
  asked.json(snapshot);
  await session.ready;
  return { tab, session };
}

/** A leading tab with its stream, and others without. */
async function family(size) {
  const world = new World();
  const tabs = [await join(world)];
  const stream = await world.take();
  stream.stream(PING);
  while (tabs.length < size) tabs.push(await join(world));
  await world.nothingAsked();
  return { world, tabs, stream };
}

const text = ({ session }) => session.view.turns.at(-1)?.items.map((item) => item.text).join("");
const leaders = (tabs) => tabs.map(({ session }) => session.connection.leader);

test("a position under a newer writer is the later one, whatever its number", () => {
  assert.ok(isBefore("1-9", "2-3") && isBefore("1-8", "1-9"));
  assert.ok(!isBefore("2-3", "1-9") && !isBefore("1-9", "1-9"));
});

test("seven tabs hold one stream, and all show what it says", async () => {
  const { tabs, stream } = await family(7);
  stream.send(start(1), token(2, "He"), token(3, "llo"));
  await settle();
  assert.deepEqual(tabs.map(text), Array(7).fill("Hello"));
  assert.deepEqual(tabs.map(({ session }) => session.connection.state), Array(7).fill("live"));
  assert.deepEqual(leaders(tabs), [true, ...Array(6).fill(false)]);
  stream.send(block("rewind", { to: 2 }, "1-2"), token(3, "y", 2));
  await settle();
  assert.deepEqual(tabs.map(text), Array(7).fill("Hey"));
});

test("when the leading tab closes, another goes on from where it is, without loss or doubles", async () => {
  const { world, tabs, stream } = await family(3);
  stream.send(start(1), token(2, "a"));
  await settle();
  tabs[0].session.close();
  const next = await world.take();
  assert.ok(stream.aborted);
  assert.equal(next.cursor, "1-2");
  next.stream(PING, token(2, "a"), token(3, "b"));
  await settle();
  assert.deepEqual(tabs.map(text), ["a", "ab", "ab"]);
  assert.deepEqual(leaders(tabs.slice(1)), [true, false]);
  tabs[1].session.close();
  assert.equal((await world.take()).cursor, "1-3");
});

test("a tab that comes late is given what its snapshot does not have yet", async () => {
  const { world, tabs, stream } = await family(1);
  stream.send(start(1), token(2, "a"), token(3, "b"));
  await settle();
  const late = await join(world);
  await settle();
  assert.equal(text(late), "ab");
  stream.send(token(4, "c"));
  await settle();
  assert.deepEqual([...tabs, late].map(text), ["abc", "abc"]);
  stream.send(block("rewind", { to: 2 }, "1-2"));
  await settle();
  assert.deepEqual([...tabs, late].map(text), ["a", "a"]);
});

test("a tab whose snapshot is ahead of the leading tab does not go back", async () => {
  const { world, stream } = await family(1);
  const turns = [{ turn_id: "t1", attempt: 1, input: [], state: "running", items: [] }];
  const ahead = await join(world, { snapshot: { ...EMPTY, cursor: "1-1", turns } });
  await settle();
  assert.equal(ahead.session.view.cursor, "1-1");
  stream.send(start(1), token(2, "a"));
  await settle();
  assert.equal(text(ahead), "a");
  const further = await join(world, { snapshot: { ...EMPTY, cursor: "1-9", turns } });
  await join(world); // is answered with all there is, which each tab hears
  await settle();
  assert.equal(further.session.view.cursor, "1-9");
});

test("a tab that missed something while it was frozen asks for all of it", async () => {
  const { tabs, stream } = await family(2);
  const [, sleeper] = tabs;
  stream.send(start(1), token(2, "a"));
  await settle();
  sleeper.tab.frozen = true;
  stream.send(token(3, "b"), token(4, "c"));
  await settle();
  sleeper.tab.frozen = false;
  stream.send(token(5, "d"));
  await settle();
  assert.equal(text(sleeper), "abcd");
});

/** Freeze the leading tab, and look at another until that leads, with a stream of its own. */
async function depose(world, leader, other) {
  leader.tab.frozen = true;
  other.tab.sign("visible");
  await world.pass(2_000);
  const stream = (await world.take()).stream(PING);
  leader.tab.frozen = false;
  await settle();
  return stream;
}

test("a tab that lost the lead waits for it like the others, and has it back when they go", async () => {
  const { world, tabs } = await family(2);
  const stream = await depose(world, ...tabs);
  stream.send(start(1));
  await settle();
  tabs[1].session.close();
  assert.equal((await world.take()).cursor, "1-1");
  assert.deepEqual(leaders(tabs.slice(0, 1)), [true]);
});

test("however often the lead was taken, a tab that has closed never has it again", async () => {
  const { world, tabs } = await family(2);
  const [one, two] = tabs;
  await depose(world, one, two);
  await depose(world, two, one);
  two.session.close();
  one.session.close();
  await settle();
  await world.nothingAsked();
  assert.equal(world.timers, 0);
});

test("a leading tab that is looked at asks nobody whether it leads", async () => {
  const { world, tabs } = await family(2);
  tabs[0].tab.sign("visible");
  await world.pass(5_000);
  await world.nothingAsked();
  assert.deepEqual(leaders(tabs), [true, false]);
});

test("a leading tab that is frozen loses the lead to the first one that is looked at", async () => {
  const { world, tabs, stream } = await family(3);
  const [frozen, hidden, seen] = tabs;
  stream.send(start(1), token(2, "a"));
  await settle();
  frozen.tab.frozen = true;
  hidden.tab.visible = seen.tab.visible = false;
  await world.pass(60_000);
  await world.nothingAsked();
  seen.tab.visible = true;
  seen.tab.sign("visible");
  await world.pass(2_000);
  const next = await world.take();
  assert.equal(next.cursor, "1-2");
  next.stream(PING, token(3, "b"));
  await settle();
  frozen.tab.frozen = false;
  await settle();
  assert.ok(stream.aborted);
  next.send(token(4, "c"));
  await settle();
  assert.deepEqual(tabs.map(text), ["abc", "abc", "abc"]);
  assert.deepEqual(leaders(tabs), [false, false, true]);
});

test("a leading tab that has nothing to say is asked, and keeps the lead", async () => {
  const { world, tabs, stream } = await family(2);
  for (let ping = 0; ping < 20; ping += 1) {
    await world.pass(10_000);
    stream.send(PING);
  }
  await world.nothingAsked();
  assert.deepEqual(leaders(tabs), [true, false]);
});

test("a refusal is known in every tab, and any of them can ask to try again", async () => {
  const { world, tabs, stream } = await family(2);
  stream.end();
  (await world.takeAfter(500)).problem(401, "unauthenticated");
  await settle();
  for (const { session } of tabs) {
    assert.equal(session.connection.state, "refused");
    assert.equal(session.connection.error.code, "unauthenticated");
  }
  tabs[1].session.reconnect();
  (await world.take()).stream(PING);
  await settle();
  assert.deepEqual(tabs.map(({ session }) => session.connection.state), ["live", "live"]);
});

/** Go to another page, and let the browser keep this one. */
function leave({ tab }) {
  tab.sign("left");
  tab.frozen = true;
}

function comeBack({ tab }) {
  tab.frozen = false;
  tab.sign("restored");
}

test("a leading page that is left gives the lead up at once, and follows when it comes back", async () => {
  const { world, tabs, stream } = await family(2);
  stream.send(start(1), token(2, "a"));
  await settle();
  leave(tabs[0]);
  const next = await world.take();
  assert.ok(stream.aborted);
  assert.equal(next.cursor, "1-2");
  next.stream(PING, token(3, "b"));
  await world.pass(5_000);
  comeBack(tabs[0]);
  await settle();
  next.send(token(4, "c"));
  await world.nothingAsked();
  assert.deepEqual(tabs.map(text), ["abc", "abc"]);
  assert.deepEqual(leaders(tabs), [false, true]);
});

test("a page that was left alone leads again when it comes back", async () => {
  const { world, tabs, stream } = await family(1);
  stream.send(start(1));
  await settle();
  leave(tabs[0]);
  await world.nothingAsked();
  assert.ok(stream.aborted);
  comeBack(tabs[0]);
  assert.equal((await world.take()).cursor, "1-1");
  assert.deepEqual(leaders(tabs), [true]);
});

test("a page that was left is never given the lead, and asks for nothing", async () => {
  const { world, tabs, stream } = await family(2);
  tabs[1].tab.sign("visible");
  for (const sign of ["left", "online", "visible", "wanted"]) tabs[1].tab.sign(sign);
  tabs[0].session.close();
  await world.pass(60_000);
  await world.nothingAsked();
  assert.ok(stream.aborted);
  assert.equal(world.timers, 0);
});

test("a page that is left while it takes the lead from a frozen one does not lead", async () => {
  const { world, tabs } = await family(2);
  const [frozen, seen] = tabs;
  frozen.tab.frozen = true;
  seen.tab.sign("visible");
  // It looks whether it is visible, and takes the lock: it is left before that is granted.
  Object.defineProperty(seen.tab, "visible", { get: () => (queueMicrotask(() => leave(seen)), true) });
  await world.pass(2_000);
  const stream = (await world.take()).stream(PING);
  assert.equal(stream.tab, frozen.tab); // it has the lock back
  frozen.tab.frozen = false;
  comeBack(seen);
  await settle();
  stream.send(start(1), token(2, "a"));
  await world.nothingAsked();
  assert.deepEqual([tabs.map(text), leaders(tabs)], [["a", "a"], [true, false]]);
});

test("a page that closed the session may ask to connect, in vain", async () => {
  const { world, tabs } = await family(2);
  tabs[1].session.close();
  tabs[1].session.reconnect();
  await world.nothingAsked();
});

test("an error that cannot be sent to other tabs is told them in its words", async () => {
  const { world, tabs, stream } = await family(2);
  stream.fail(Object.assign(new Error("cut"), { retry() {} }));
  await settle();
  for (const { session } of tabs) {
    const { state, error } = session.connection;
    assert.deepEqual([state, error.message], ["waiting", "cut"]);
  }
  (await world.takeAfter(500)).stream(PING);
});

test("where a page may have no locks, each tab has its own stream", async () => {
  const world = new World();
  const first = await join(world, { sandboxed: true });
  (await world.take()).stream(PING);
  const second = await join(world, { sandboxed: true });
  (await world.take()).stream(PING, start(1));
  await settle();
  assert.deepEqual(leaders([first, second]), [true, true]);
});

test("without locks or channels, and where it is not wanted, each tab has its own stream", async () => {
  const world = new World();
  await join(world, { shares: false });
  (await world.take()).stream(PING);
  await join(world, { shares: false });
  (await world.take()).stream(PING);
});

test("a tab that closes gives everything back, leading or not", async () => {
  const { world, tabs } = await family(3);
  tabs[1].session.close();
  tabs[2].session.close();
  tabs[0].session.close();
  await settle();
  await world.nothingAsked();
  assert.equal(world.timers, 0);
});
