// The AI SDK's `useChat` in a React component, told from outside what to do.
// Knows nothing of the server but its address. Each line of input calls what the hook gave, or shows the
// tab again; what the component is given by each render is a line of output.
import { createInterface } from "node:readline";
import { useChat } from "@ai-sdk/react";
import { DefaultChatTransport } from "ai";
import { createElement } from "react";
import { create } from "react-test-renderer";

const { api, ...options } = JSON.parse(process.argv[2]);
globalThis.document = Object.assign(new EventTarget(), { visibilityState: "visible" });

// The kit knows a lost network by the words of browsers, which node's are not.
const { fetch } = globalThis;
globalThis.fetch = async (...request) => {
  const answer = await fetch(...request);
  return new Response(answer.body && ReadableStream.from(inBrowsersWords(answer.body)), answer);
};

async function* inBrowsersWords(body) {
  try {
    yield* body;
  } catch {
    throw new TypeError("network error");
  }
}

const transport = new DefaultChatTransport({ api });
let chat;

function Page() {
  chat = useChat({ ...options, transport, resume: true });
  const { status, error, messages } = chat;
  console.log(JSON.stringify({ status, error: error?.message, messages }));
  return null;
}

create(createElement(Page));
for await (const line of createInterface({ input: process.stdin })) {
  const { call, args } = JSON.parse(line);
  if (call === "show") document.dispatchEvent(new Event("visibilitychange"));
  else void chat[call](...args);
}
process.exit(0);
