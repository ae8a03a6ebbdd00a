// Node with the client library as an npm package: sends one turn twice, reads it to its end, and says what it has.
//
// Knows nothing of what is between it and the edge.

import { open } from "unbroken";

const [, , baseUrl, key] = process.argv;
const session = open({ baseUrl });
const say = (news) => console.log(JSON.stringify(news));

await session.ready;
session.subscribe(() => say({ view: session.view, state: session.connection.state }));
say({ sent: [await session.send("Hi", { key }), await session.send("Hi", { key })] });
const heard = [];
for await (const { type, id } of session.events({ after: "0-0", until: "turn_end" })) heard.push([type, id]);
say({ id: session.id, heard });
await shown(({ turns }) => turns[0]?.state === "finished");
session.close();

/** Wait for a view: it has a stream of its own, which may be behind the loop's. */
function shown(holds) {
  return new Promise((resolve) => {
    const check = () => holds(session.view) && resolve();
    session.subscribe(check);
    check();
  });
}
