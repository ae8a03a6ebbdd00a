// Positions in a session's log, "<epoch>-<seq>", and which event a reader at one takes next.
//
// Knows nothing of what events mean. The server's half is PROTOCOL.md, "Where a cursor resumes".

/** Before the first event of any session. */
export const START = "0-0";

/** Thrown when events are missing between a reader and what it was given. */
export class Gap extends Error {
  name = "Gap";
}

/** The parts of a cursor, as numbers. */
export function parseCursor(cursor) {
  const [epoch, seq] = cursor.split("-").map(Number);
  return { epoch, seq };
}

/** Whether `cursor` is an older position than `other`: of an older writer, or earlier with the same one. */
export function isBefore(cursor, other) {
  const [a, b] = [parseCursor(cursor), parseCursor(other)];
  return a.epoch < b.epoch || (a.epoch === b.epoch && a.seq < b.seq);
}

/**
 * Whether the event at `id` is the next one for a reader at `cursor`, rather than one that it has.
 * An older epoch speaks from a stale connection.
 *
 * Throws `Gap` where something is missing, or where the log has gone another way than the reader's.
 */
export function isNext(cursor, id) {
  const at = parseCursor(cursor);
  const { epoch, seq } = parseCursor(id);
  if (epoch < at.epoch) return false;
  if (seq > at.seq + 1 || (seq <= at.seq && epoch > at.epoch)) throw new Gap(`${id} after ${cursor}`);
  return seq > at.seq;
}
