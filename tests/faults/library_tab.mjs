// A tab with the client library: says how it is connected and what it shows, and stops the turn for each line.
//
// Knows nothing of what is between it and the edge.

import { createInterface } from "node:readline";

import { open } from "../../edge/static/unbroken/unbroken.js";

const session = open({ ...JSON.parse(process.argv[2]), share: false });

session.subscribe(() => {
  const { connection, view } = session;
  const { state, error } = connection;
  console.log(JSON.stringify({ state, status: error?.status, reason: error?.reason, view }));
});

for await (const _ of createInterface(process.stdin)) await session.stop();
