// Reads streams, as JSON on stdin, with AG-UI's published clients, and prints what each of them holds then.
// Knows nothing of where the streams come from: an agent's own `fetch` hands them over.
import { text } from "node:stream/consumers";

console.warn = console.error = () => {}; // what a client complains about shows in what it holds

const packages = {};

async function read({ packageName, stream, messages }) {
  const { HttpAgent } = (packages[packageName] ??= await import(packageName));
  const answer = () => new Response(stream, { headers: { "content-type": "text/event-stream" } });
  const config = { url: "http://unused.invalid", threadId: "thread", initialMessages: messages };
  const agent = new HttpAgent({ ...config, fetch: async () => answer() });
  let failure = null;
  agent.subscribe({ onRunErrorEvent: ({ event }) => { failure = event.code; } });
  try {
    await agent.runAgent({ runId: "run" });
  } catch (error) {
    failure = String(error);
  }
  return { messages: agent.messages, state: agent.state, failure };
}

for (const work of JSON.parse(await text(process.stdin))) {
  console.log(JSON.stringify(await read(work)));
}
