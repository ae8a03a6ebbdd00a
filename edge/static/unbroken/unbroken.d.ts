/** Types of unbroken.js. The rules behind them are in proto/PROTOCOL.md. */

/** `"<epoch>-<seq>"`: a position in a session's log, and the id of the event there. */
export type Cursor = string;

export interface Options {
  /** The edge's origin, such as `"https://agents.example"`; by default that of the page. */
  baseUrl?: string;
  /** The session to open; without it a new one is made. */
  sessionId?: string;
  /**
   * A bearer token, or what fetches one. It is asked with `refresh` when the last token was refused or is about to
   * expire, and its answer is kept until then. What it rejects with is the `cause` of the error that is told.
   */
  token?: string | ((why: { refresh: boolean }) => string | Promise<string>);
  /** More headers for every request. */
  headers?: Record<string, string>;
  /** Whether cookies go along; `"same-origin"` by default. */
  credentials?: "omit" | "same-origin" | "include";
  /** Used in place of the global `fetch`. */
  fetch?: typeof fetch;
  /** Whether tabs of one browser share one stream; true by default. */
  share?: boolean;
  /** How long a connection may be without a byte, in ms; 25,000 by default. The edge pings every 10 s. */
  stallMs?: number;
  /** Stand-ins for what the host offers (see environment.js), for tests. */
  environment?: Record<string, unknown>;
}

/** Open a session. It connects when somebody subscribes or iterates. */
export function open(options?: Options): Session;

/** A random key for a turn, also where `crypto.randomUUID` is missing. */
export function newKey(): string;

export interface Session extends AsyncIterable<StreamEvent> {
  /** Known once `ready` has resolved, or from the start if it was given. */
  readonly id: string | undefined;
  /**
   * Resolves when the session is known and its view loaded; rejects with `ProblemError` if the server refuses. After
   * that `reconnect` loads anew, and this is another promise.
   */
  readonly ready: Promise<void>;
  /** A new object whenever something has changed; what has not keeps its identity. Follows from the first `subscribe` on. */
  readonly view: View;
  readonly connection: Connection;
  /** How far iteration has come. */
  readonly cursor: Cursor | undefined;
  /** `listener` is called after every change of `view` or `connection`. Returns what ends that. Needs no `this`. */
  readonly subscribe: (listener: () => void) => () => void;
  /**
   * Every event after `after` (by default: where the last iteration came to, at first the cursor of the snapshot),
   * each once and in order, and the control events of this connection. Ends never (`"follow"`), when no turn is
   * unfinished (`"turn_end"`), or after the terminal event of `turnId`. Throws `ProblemError`.
   */
  events(options?: { after?: Cursor; until?: "follow" | "turn_end"; turnId?: string }): AsyncGenerator<StreamEvent, void>;
  /** Start a turn, and try until the server has it. The key stays the same, so it is one turn however often it is sent. */
  send(input: string | InputPart[], options?: SendOptions): Promise<{ turnId: string; cursor: Cursor; replayed: boolean }>;
  /** Stop a turn, by default the one that `view` shows as open. */
  stop(turnId?: string): Promise<{ state: "cancelling" | "done" }>;
  /** Answer a call that waits for a person or for this client. */
  decide(turnId: string, callId: string, decision: Decision): Promise<{ state: "accepted" }>;
  /** Connect anew, now: end every wait, and try what was refused again. */
  reconnect(): void;
  /** End everything on this side; a running turn goes on. */
  close(): void;
}

export interface SendOptions {
  /** 16 to 128 characters of `[A-Za-z0-9_-]`; by default `newKey()`. Keep it to send the same turn after a reload. */
  key?: string;
  agent?: string;
  onDisconnect?: "continue" | "cancel";
  pacing?: "free" | "viewer";
}

export type Decision = { approve: true } | { approve: false; reason?: string } | { result: unknown } | { error: string };

export type InputPart =
  | { type: "text"; text: string }
  | { type: "file"; uri: string; media_type: string; name?: string }
  | { type: "data"; data_json: string };

export interface Connection {
  readonly state: "connecting" | "live" | "waiting" | "offline" | "stalled" | "refused" | "closed";
  /** How many tries have failed in a row. */
  readonly attempt: number;
  /** When the next try is due, in ms since 1970. */
  readonly retryAt?: number;
  /** Why it is not live. */
  readonly error?: Error;
  /** Whether this tab holds the stream. */
  readonly leader: boolean;
}

/** A session as a page shows it; the shape is that of the snapshot (`GET /v1/sessions/{id}`). */
export interface View {
  readonly cursor: Cursor;
  /** Whether what is shown cannot be made durable just now. */
  readonly degraded: boolean;
  readonly turns: readonly Turn[];
  /** The agent's shared state: JSON texts by key. */
  readonly state: Readonly<Record<string, string>>;
}

export interface Turn {
  readonly turn_id: string;
  readonly attempt: number;
  readonly agent?: string;
  readonly input?: readonly InputPart[];
  /** What the client that sent the input calls it, if it has a name for it. */
  readonly message_id?: string;
  readonly items: readonly Item[];
  /** `"cancelling"` is known from a snapshot only. */
  readonly state: "running" | "suspended" | "cancelling" | "finished";
  readonly suspended?: {
    readonly reason: "checkpoint" | "draining" | "input_required" | "client_tool";
    readonly pending_call_ids: readonly string[];
    readonly prompt?: string;
    readonly response_schema_json?: string;
  };
  readonly outcome?: "completed" | "cancelled" | "limit" | "failed";
  readonly limit?: string;
  readonly final_message_id?: string;
  readonly usage?: Readonly<Record<string, unknown>>;
  readonly error?: Fault;
  /** Of a failed turn. */
  readonly code?: string;
  readonly retryable?: boolean;
  readonly user_message?: string;
}

export interface Fault {
  readonly reason?: string;
  readonly user_message?: string;
  readonly [member: string]: unknown;
}

/** `key` is unique within its turn, and stays the same for as long as the item is shown. */
export type Item = { readonly key: string } & (MessageItem | ToolCallItem | NoticeItem | CustomItem);

export interface MessageItem {
  readonly type: "message";
  readonly message_id: string;
  readonly status: "streaming" | "complete" | "incomplete" | "discarded";
  readonly role?: string;
  readonly author?: string;
  /** So far, while `status` is `"streaming"`. */
  readonly text?: string;
  /** Once it is settled. */
  readonly parts?: readonly { readonly type: string; readonly text?: string; readonly [member: string]: unknown }[];
  readonly reasoning?: string;
}

export interface ToolCallItem {
  readonly type: "tool_call";
  readonly call_id: string;
  readonly name?: string;
  readonly arguments_json?: string;
  readonly message_id?: string;
  readonly parent_call_id?: string;
  readonly replay_safety?: string;
  readonly executor?: "runtime" | "client" | string;
  readonly progress?: {
    readonly message?: string;
    readonly fraction?: number;
    readonly preliminary_result_json?: string;
  };
  /** Missing while it runs or waits. */
  readonly outcome?: "succeeded" | "failed" | "unknown" | "not_executed";
  readonly result_json?: string;
  readonly error?: Fault;
  readonly duration_ms?: number;
}

export interface NoticeItem {
  readonly type: "notice";
  readonly error: Fault;
  readonly message_id?: string;
  readonly call_id?: string;
}

export interface CustomItem {
  readonly type: "custom";
  readonly name: string;
  readonly value_json: string;
}

/** Durable events and control events alike; `id` is the position that it leads to. */
export interface StreamEvent {
  readonly type: string;
  readonly id: Cursor;
  readonly epoch: number;
  readonly seq: number;
  readonly data: any;
}

/** The server's refusal (RFC 9457). */
export class ProblemError extends Error {
  readonly status: number;
  readonly type: string;
  readonly title: string;
  readonly detail?: string;
  /** The last part of `type`, such as `"turn-in-progress"`; empty where a proxy answered. */
  readonly code: string;
  readonly retryAfterMs?: number;
  /** The turn that is in the way, of `"turn-in-progress"`. */
  readonly turnId?: string;
  readonly errors?: readonly { readonly pointer: string; readonly detail: string }[];
}

/** Events are missing: read again from the cursor. */
export class Gap extends Error {}

/** Before the first event of any session. */
export const START: "0-0";
/** An empty conversation. */
export const EMPTY: View;
export const EVENT_TYPES: readonly string[];
export const CONTROL_TYPES: readonly string[];
export const TERMINAL_TYPES: readonly string[];

/** The next view; the same object where the event changes nothing. Throws `Gap`. */
export function fold(view: View, event: Pick<StreamEvent, "type" | "id" | "data">): View;
/** The view that `GET /v1/sessions/{id}` describes. */
export function fromSnapshot(snapshot: { cursor: Cursor; turns: readonly any[]; state: Record<string, string> }): View;
/** The turn that has not ended. */
export function openTurn(view: View): Turn | undefined;
/** Whether the turn waits for a person or for this client. */
export function isParked(turn: Turn): boolean;
/** Whether the call is one that its parked turn waits for. */
export function isAsked(turn: Turn, call: ToolCallItem): boolean;
/** A message's text, settled or not. */
export function textOf(item: Item | MessageItem): string;
export function parseCursor(cursor: Cursor): { epoch: number; seq: number };
/** Whether the event at `id` is the next one for a reader at `cursor`. Throws `Gap`. */
export function isNext(cursor: Cursor, id: Cursor): boolean;

/** A parser of event streams, for bytes split anywhere. */
export class Parser {
  constructor(lastEventId?: string);
  lastEventId: string;
  push(bytes: Uint8Array): { type: string; id: string; data: string; retryMs?: number }[];
}
