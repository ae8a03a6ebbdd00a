// What a server's refusal says (RFC 9457), as an error with fields.
//
// Knows nothing of who asked. Whether it is worth asking again is decided here, and nowhere else.

/** A refusal: `type` is "urn:unbroken:problem:<code>", `retryAfterMs` what the server asked to wait. */
export class ProblemError extends Error {
  name = "ProblemError";

  constructor({ status, type = "about:blank", title = `HTTP ${status}`, detail, retryAfterMs, turn_id, errors }) {
    super(title);
    Object.assign(this, { status, type, title, detail, retryAfterMs, turnId: turn_id, errors });
  }

  /** The last part of `type`, such as "turn-in-progress"; empty where a proxy answered. */
  get code() {
    return /^urn:unbroken:problem:([a-z-]+)$/.exec(this.type)?.[1] ?? "";
  }
}

const PASSING = [408, 425, 429, 500, 502, 503, 504];

/** Whether the same request may fare better later. */
export function isPassing(error) {
  return !(error instanceof ProblemError) || PASSING.includes(error.status);
}

/** The error that a response stands for, whoever wrote its body. */
export async function problemOf(response, now) {
  const said = await response.json().catch(() => ({}));
  const retryAfterMs = parseRetryAfter(response.headers.get("Retry-After"), now);
  return new ProblemError({ ...said, status: response.status, retryAfterMs });
}

/** `Retry-After` in ms from `now`, in either of its two forms; undefined without it. */
function parseRetryAfter(value, now) {
  if (value === null) return undefined;
  const ms = /^[0-9]+$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - now;
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
