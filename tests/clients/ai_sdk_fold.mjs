// Reads streams, as JSON on stdin, with the AI SDK's own readers, and prints what each makes of its message.
// Knows nothing of where the streams come from: a transport's own `fetch` hands them over.
import { text } from "node:stream/consumers";

const packages = {};

async function read({ packageName, stream }) {
  const sdk = (packages[packageName] ??= await import(packageName));
  const fetch = async () => new Response(stream, { headers: { "content-type": "text/event-stream" } });
  const transport = new sdk.DefaultChatTransport({ api: "http://unused.invalid", fetch });
  const chunks = await transport.reconnectToStream({ chatId: "chat" });
  let message = null;
  let failure = null;
  try {
    for await (message of sdk.readUIMessageStream({ stream: chunks, terminateOnError: true }));
  } catch (error) {
    failure = error.message;
  }
  return { message, failure };
}

for (const work of JSON.parse(await text(process.stdin))) {
  console.log(JSON.stringify(await read(work)));
}
