// AG-UI's own agent for HTTP, told from outside what to do.
// Knows nothing of the server but its address. Each line of input calls a method of the agent; each
// change of the agent is a line of output.
import { createInterface } from "node:readline";

const { packageName, url, threadId } = JSON.parse(process.argv[2]);
const { HttpAgent } = await import(packageName);

const told = { events: [], ends: [], errors: [], complaints: [], answers: 0 };
console.warn = console.error = (...words) => told.complaints.push(words.join(" "));

const agent = new HttpAgent({ url, threadId });

function print() {
  const { isRunning, messages, state, pendingInterrupts } = agent;
  console.log(JSON.stringify({ isRunning, messages, state, pendingInterrupts, ...told }));
}

agent.subscribe({
  onEvent: ({ event }) => { told.events.push(event.type); },
  onRunFinishedEvent: ({ event }) => { told.ends.push(event.outcome ?? null); },
  onRunErrorEvent: ({ event }) => { told.ends.push({ code: event.code, message: event.message }); },
  onMessagesChanged: print,
  onStateChanged: print,
});

async function call(name, args) {
  try {
    await agent[name](...args);
  } catch (error) {
    told.errors.push(String(error));
  }
  told.answers += 1;
  print();
}

for await (const line of createInterface({ input: process.stdin })) {
  const { name, args, headers } = JSON.parse(line);
  agent.headers = headers ?? agent.headers;
  void call(name, args);
}
process.exit(0);
