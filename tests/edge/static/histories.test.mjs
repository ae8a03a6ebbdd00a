// Random fault histories, made by histories.py: a session that goes through one ends with the journal's view.
//
// HISTORIES names the file: one history a line.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { open } from "../../../edge/static/unbroken/unbroken.js";
import { World, settle } from "./world.mjs";

const lines = readFileSync(process.env.HISTORIES, "utf8").trimEnd().split("\n");

/** A view as the journal has it: without what only a page needs. */
function plain({ cursor, turns, state }) {
  const items = (turn) => turn.items.map(({ key, ...item }) => item);
  return JSON.parse(JSON.stringify({ cursor, turns: turns.map((turn) => ({ ...turn, items: items(turn) })), state }));
}

/** What is settled in a view; it must never change, nor go, but by a reset. */
function settled({ turns }) {
  return turns.flatMap((turn) => [
    ...(turn.state === "finished" ? [turn.turn_id] : []),
    ...turn.items.filter(({ status, outcome }) => outcome || (status && status !== "streaming")).map(({ key }) => turn.turn_id + key),
  ]);
}

async function carry(exchange, { pieces, ending }) {
  exchange.stream(...pieces);
  await settle();
  if (ending === "clean") exchange.end();
  if (ending === "broken") exchange.fail();
}

async function live({ snapshot, connections, view }, name) {
  const world = new World();
  const session = open({ sessionId: "session-0123456789", environment: world.tab().environment });
  (await world.take()).json(snapshot);
  await session.ready;
  const flashes = [];
  let facts = [];
  let isReset = false;
  session.subscribe(() => {
    const now = settled(session.view);
    if (!isReset) flashes.push(...facts.filter((fact) => !now.includes(fact)));
    facts = now;
  });
  for (const connection of connections) {
    const exchange = await world.takeNext();
    assert.equal(exchange.cursor, connection.cursor, `${name}: where it resumes`);
    isReset = connection.pieces.join("").includes("event: reset");
    await carry(exchange, connection);
  }
  assert.deepEqual(plain(session.view), view, name);
  assert.deepEqual(flashes, [], `${name}: what was settled, and was not shown for a while`);
  session.close();
  await settle();
  assert.equal(world.timers, 0, `${name}: what it leaves behind`);
}

test(`${lines.length} random fault histories end with the journal's view`, async () => {
  assert.ok(lines.length >= 1_000);
  for (const [seed, line] of lines.entries()) await live(JSON.parse(line), `history ${seed}`);
});
