// The AI SDK's own chat, as its framework bindings build it, told from outside what to do.
// Knows nothing of the server but its address. Each line of input calls a method of the chat; each
// change of the chat is a line of output.
import { createInterface } from "node:readline";

const { packageName, api, id, messages = [], sendWhen } = JSON.parse(process.argv[2]);
let headers;
const sdk = await import(packageName);

const told = { toolCalls: [], data: [], finishes: [] };

/** What a binding keeps for its framework; this one prints it. */
class PrintedState {
  #status = "ready";
  #error = undefined;
  #messages = messages;

  get status() { return this.#status; }
  set status(value) { this.#status = value; this.print(); }
  get error() { return this.#error; }
  set error(value) { this.#error = value; this.print(); }
  get messages() { return this.#messages; }
  set messages(value) { this.#messages = value; this.print(); }

  pushMessage = (message) => { this.messages = [...this.messages, message]; };
  popMessage = () => { this.messages = this.messages.slice(0, -1); };
  replaceMessage = (index, message) => { this.messages = this.messages.with(index, message); };
  snapshot = structuredClone;

  print() {
    const error = this.#error && { name: this.#error.name, message: this.#error.message };
    console.log(JSON.stringify({ status: this.#status, error, messages: this.#messages, ...told }));
  }
}

class Chat extends sdk.AbstractChat {}  // bindings give theirs a state that renders

const state = new PrintedState();
const note = (list) => (entry) => { list.push(entry); state.print(); };

const chat = new Chat({
  id,
  state,
  transport: new sdk.DefaultChatTransport({ api, headers: () => headers }),
  sendAutomaticallyWhen: sendWhen && sdk[sendWhen],
  onToolCall: ({ toolCall }) => note(told.toolCalls)(toolCall.toolCallId),
  onData: note(told.data),
  onFinish: ({ isError, isAbort, finishReason }) => note(told.finishes)({ isError, isAbort, finishReason }),
});

for await (const line of createInterface({ input: process.stdin })) {
  const { call, args, headers: newer } = JSON.parse(line);
  headers = newer ?? headers;
  if (call) void chat[call](...args);
  else state.print();
}
process.exit(0);
