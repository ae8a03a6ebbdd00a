// Node with the client library as an npm package, for a user whose tokens an issuer makes: sends one turn, and says what
// it hears and how it is connected.
//
// Knows nothing of how long a token lives.

import { open } from "unbroken";

const [, , baseUrl, tokenUrl] = process.argv;
const asked = [];

async function token({ refresh }) {
  asked.push(refresh);
  return (await fetch(tokenUrl)).text();
}

const session = open({ baseUrl, token });
await session.ready;
session.subscribe(() => {
  const { state, error } = session.connection;
  const said = ({ text, parts }) => text ?? parts.map((part) => part.text).join("");
  const texts = session.view.turns.flatMap(({ items }) => items.map(said));
  console.log(JSON.stringify({ asked, state, code: error?.code, texts, cursor: session.view.cursor }));
});
await session.send("Hi");
