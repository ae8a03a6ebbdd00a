// What the page says: outcomes, endings and JSON as words for people. Never a bare code.
//
// Knows nothing of the DOM or the network.

import { isParked } from "./unbroken/unbroken.js";

export const CONNECTION = {
  connecting: "Connecting…",
  connected: "Connected",
  degraded: "Saving is delayed",
  reconnecting: "Reconnecting…",
};
export const BUSY = "Wait for the answer, or stop it.";
export const MISSING = "There is no such chat, or it is no longer kept.";

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

/** How a tool call stands; `asks` when it waits for a person. */
export function callWords(call, asks) {
  if (!call.outcome) return asks ? "waits for you" : "running";
  return REASON[call.outcome]?.[call.error?.reason] ?? OUTCOME[call.outcome] ?? "ended";
}

/** What a call asks. The turn's one prompt says it only if the turn waits for nothing else. */
export function questionWords({ suspended }, call) {
  if (suspended.prompt && suspended.pending_call_ids.length === 1) return suspended.prompt;
  return call.executor === "client" ? `What does “${call.name}” answer?` : `May “${call.name}” run?`;
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
  let value;
  try {
    value = JSON.parse(json);
  } catch {
    return json;
  }
  return typeof value === "string" ? value : indented(json);
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
