// How long to wait before the next try, and the wait itself, which a sign of life cuts short.
//
// Knows nothing of what is tried. Full jitter (any time from none to the bound), so that all who lost the same
// server do not come back together.

export const FIRST_MS = 1_000;
export const MOST_MS = 20_000;

const DEADENING = ["online", "restored"]; // whatever was open before is dead
const WAKING = ["online", "visible", "restored", "wanted"];
const LONGEST_MS = 2 ** 31 - 1; // a browser's timer for longer than that is over at once

/** The wait after `failures` failures in a row, in ms; not shorter than the server asked for. */
export function decideWait({ failures, toldMs, random }) {
  const bound = failures === 0 ? 0 : Math.min(FIRST_MS * 2 ** (failures - 1), MOST_MS);
  return Math.min((toldMs ?? 0) + Math.floor(random() * bound), LONGEST_MS);
}

/** Wait for `ms`, which may be `Infinity`, or until `signal` aborts, or until one of `signs` that trying is worth it. */
export function pause(ms, environment, signal, signs = WAKING) {
  return new Promise((resolve) => {
    const end = () => {
      environment.clearTimeout(timer);
      stopListening();
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = ms < Infinity ? environment.setTimeout(end, ms) : undefined;
    const stopListening = environment.onSign((sign) => signs.includes(sign) && end());
    if (signal?.aborted) end();
    else signal?.addEventListener("abort", end);
  });
}

/**
 * Do `work(signal)`, and give it up after `ms`, when `signal` aborts, or when its connection must be dead.
 * A request may wait for its answer for many minutes after the network under it has gone.
 */
export async function bounded(work, ms, environment, signal) {
  const gate = new AbortController();
  const giveUp = () => gate.abort(signal?.reason ?? new Error("no answer"));
  const timer = environment.setTimeout(giveUp, ms);
  const stopListening = environment.onSign((sign) => DEADENING.includes(sign) && giveUp());
  signal?.addEventListener("abort", giveUp);
  const givenUp = new Promise((_, reject) => gate.signal.addEventListener("abort", () => reject(gate.signal.reason)));
  try {
    return await Promise.race([work(gate.signal), givenUp]);
  } finally {
    environment.clearTimeout(timer);
    stopListening();
    signal?.removeEventListener("abort", giveUp);
  }
}
