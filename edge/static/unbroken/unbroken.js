// The client library of Unbroken, whole: one session, and the pure parts for those who want only them.
//
// Knows nothing of pages. No build step, no dependency; the types and options are in unbroken.d.ts.

export { Gap, START, isNext, parseCursor } from "./cursor.js";
export { newKey } from "./environment.js";
export { ProblemError } from "./problems.js";
export { open } from "./session.js";
export { Parser } from "./sse.js";
export {
  CONTROL_TYPES,
  EMPTY,
  EVENT_TYPES,
  TERMINAL_TYPES,
  fold,
  fromSnapshot,
  isAsked,
  isParked,
  openTurn,
  textOf,
} from "./view.js";
