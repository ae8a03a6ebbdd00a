// What the page says: outcomes, endings and JSON as words for people. Never a bare code.
//
// Knows nothing of the DOM or the network.

import { isParked } from "./unbroken/unbroken.js";

const CONNECTION = {
  connecting: "Connecting…",
  live: "Connected",
  waiting: "Reconnecting…",
  stalled: "Reconnecting…",
  offline: "Offline",
  refused: "Not connected",
};
const TROUBLE = {
  waiting: ["There is no connection.", "The answer goes on at the server, and nothing of it is lost."],
  stalled: ["The connection went silent.", "The answer goes on at the server, and nothing of it is lost."],
  offline: ["You are offline.", "The answer goes on, and will be here when you are back."],
};
export const BUSY = "Wait for the answer, or stop it.";
export const MISSING = "There is no such chat, or it is no longer kept.";
const REFUSAL = {
  unauthenticated: "This server asks who you are, and this page has no sign-in.",
  "invalid-token": "This server does not take your sign-in.",
  "token-expired": "Your sign-in has expired. Load the page again.",
};

const OUTCOME = {
  succeeded: "done",
  failed: "failed",
  unknown: "outcome unknown: nobody knows whether it acted",
  not_executed: "not run",
};
const REASON = {
  failed: {
    TOOL_TIMEOUT: "failed: it took too long",
    RESULT_NOT_JSON: "failed: its result is unusable",
  },
  not_executed: {
    DENIED: "not run: you said no",
    TURN_ENDED: "stopped before it ran",
    CANCELLED: "stopped before it ran",
    INVALID_ARGUMENTS: "not run: its arguments do not fit",
    TOOL_ARGS_TOO_LARGE: "not run: its arguments are too long",
    UNKNOWN_TOOL: "not run: there is no such tool",
  },
};
const ENDING = {
  cancelled: "Stopped.",
  limit: "Stopped at a limit.",
  failed: "This answer failed.",
};
const FAILURE = {
  runtime_unavailable: "This answer failed: the agent could not be reached.",
  runtime_timeout: "This answer failed: the agent took too long.",
  runtime_overloaded: "This answer failed: the agent has too much to do.",
};
const TOKENS = /"(?:[^"\\]|\\.)*"|\{\s*\}|\[\s*\]|[{}[\],:]|[^\s{}[\],:"]+/g;

/** Whether a message that was sent after the turn `unsent.after` has become no turn yet. */
export function isPending(view, unsent) {
  return Boolean(unsent) && view.turns.at(-1)?.turn_id === unsent.after;
}

/** How the page is connected, in a word or two. */
export function connectionWords({ state, attempt }, isDegraded) {
  if (state === "live" && isDegraded) return "Saving is delayed";
  return CONNECTION[state === "connecting" && attempt > 0 ? "waiting" : state] ?? "";
}

/** What it means to a person that the server refused. */
export function refusalWords({ code, message }) {
  return REFUSAL[code] ?? message;
}

/** What a lost connection means to a person who waits for an answer, or not; empty while there is none to miss. */
export function troubleWords({ state, attempt, error }, isAnswering) {
  if (state === "refused") return error ? refusalWords(error) : "The server refuses the connection.";
  const isAgain = state === "connecting" && attempt > 0;
  const [what, comfort] = TROUBLE[isAgain ? "waiting" : state] ?? [""];
  return isAnswering && comfort ? `${what} ${comfort}` : what;
}

/** What is to be heard of the newest turn now that it stands as `now`; undefined if nothing is. */
export function heardWords(before, now) {
  if (!now || (before?.turn_id === now.turn_id && before.state === now.state)) return undefined;
  if (now.state === "finished") return endingWords(now) || "The answer is complete.";
  return isParked(now) ? "The agent waits for you." : undefined;
}

/** How long something took; empty if nobody says, or if nobody could have noticed. */
export function durationWords(ms = 0) {
  if (ms < 50) return "";
  const seconds = ms / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  return `${Math.floor(Math.round(seconds) / 60)} min ${Math.round(seconds) % 60} s`;
}

/** What stands over an agent's reasoning, while it `thinks` and after. */
export function thoughtWords(thinks) {
  return thinks ? "Thinking…" : "Reasoning";
}

/** How a tool call stands; `asks` when it waits for a person. */
export function callWords(call, asks) {
  if (!call.outcome) return asks ? "waits for you" : "running";
  return REASON[call.outcome]?.[call.error?.reason] ?? OUTCOME[call.outcome] ?? "ended";
}

/** What a call asks. Its turn's one prompt says it only if the turn waits for nothing else. */
export function questionWords(suspended, call) {
  if (suspended.prompt && suspended.pending_call_ids.length === 1) return suspended.prompt;
  const { prompt } = parsed(call.arguments_json ?? "") ?? {};
  if (call.executor === "client" && typeof prompt === "string") return prompt;
  return call.executor === "client" ? `What does “${call.name}” answer?` : `May “${call.name}” run?`;
}

/** The few answers that there are, if there are few. */
export function choicesOf(suspended) {
  const { enum: choices, type } = schemaOf(suspended);
  return choices ?? (type === "boolean" ? [true, false] : undefined);
}

/** The answer that a person typed: as text, unless something else is wanted and is there. */
export function answerOf(suspended, text) {
  const isText = [undefined, "string"].includes(schemaOf(suspended).type);
  return isText ? text : (parsed(text) ?? text);
}

/** An agent may send anything as its schema, and then has none. */
function schemaOf({ response_schema_json: json = "", pending_call_ids: { length } }) {
  return (length === 1 && parsed(json)) || {};
}

/** How a turn ended, or is about to; empty when its answer says enough. */
export function endingWords(turn) {
  if (turn.state === "cancelling") return "Stopping…";
  if (turn.state !== "finished" || turn.outcome === "completed") return "";
  return turn.user_message ?? FAILURE[turn.code] ?? ENDING[turn.outcome] ?? "";
}

/** What is being waited for, of an open `turn`, when nothing has come for a while. */
export function statusWords({ turn, pending, quiet, stopping }) {
  if (turn && turn.turn_id === stopping) return "Stopping…";
  if (!quiet) return "";
  if (pending) return "Not sent yet. Trying again…";
  if (!turn || isParked(turn)) return "";
  const call = turn.items.findLast((item) => item.type === "tool_call" && !item.outcome);
  return call ? `Still working: ${call.name ?? "a tool"}…` : "Waiting for the answer…";
}

/** JSON for people: a string as its text, anything else on lines of its own; no number is rounded. */
export function readable(json = "") {
  const value = parsed(json);
  if (typeof value === "string") return value;
  return value === undefined ? json : indented(json);
}

function parsed(json) {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

function indented(json) {
  let depth = 0;
  const line = () => `\n${"  ".repeat(depth)}`;
  const write = (token) => {
    if (token === "{" || token === "[") return token + ((depth += 1), line());
    if (token === "}" || token === "]") return ((depth -= 1), line()) + token;
    if (token === ",") return token + line();
    if (token === ":") return ": ";
    if (token[0] === '"') return JSON.stringify(JSON.parse(token));
    return token.replace(/\s/g, "");
  };
  return json.match(TOKENS).map(write).join("");
}
