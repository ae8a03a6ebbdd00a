// How a page written in TypeScript uses the library: it must compile, and each marked line must not.

import { EMPTY, Parser, ProblemError, fold, fromSnapshot, isAsked, open, openTurn, textOf } from "../../../edge/static/unbroken/unbroken.js";
import type { Connection, Item, Session, StreamEvent, View } from "../../../edge/static/unbroken/unbroken.js";

const session: Session = open({ sessionId: "s", token: async ({ refresh }) => (refresh ? "new" : "old") });

export async function chat(): Promise<string> {
  await session.ready;
  const leave: () => void = session.subscribe(() => draw(session.view, session.connection));
  try {
    const { turnId, replayed } = await session.send([{ type: "text", text: "Hi" }], { agent: "helper" });
    for await (const event of session.events({ until: "turn_end", turnId })) hear(event);
    return `${turnId} ${replayed}`;
  } catch (error) {
    if (error instanceof ProblemError) return `${error.status} ${error.code} ${error.turnId ?? ""}`;
    throw error;
  } finally {
    leave();
  }
}

function draw(view: View, connection: Connection): string {
  const turn = openTurn(view);
  const asked = turn?.items.filter((item) => item.type === "tool_call" && isAsked(turn, item)) ?? [];
  const shown = view.turns.flatMap(({ items }) => items.map(words));
  return [connection.state, connection.retryAt?.toFixed(), asked.length, ...shown].join();
}

function words(item: Item): string {
  switch (item.type) {
    case "message":
      return item.reasoning ?? textOf(item);
    case "tool_call":
      return item.outcome ?? item.progress?.message ?? item.name ?? "";
    case "notice":
      return item.error.user_message ?? "";
    case "custom":
      return item.value_json;
  }
}

function hear({ type, id, seq, data }: StreamEvent): View {
  return seq > 0 ? fold(EMPTY, { type, id, data }) : fromSnapshot({ cursor: id, turns: [], state: {} });
}

export const blocks: { id: string }[] = new Parser("1-2").push(new Uint8Array());

// @ts-expect-error A view is never changed.
session.view.turns = [];
// @ts-expect-error There is no such state.
export const wrong: boolean = session.connection.state === "open";
// @ts-expect-error A decision is one of three.
session.decide("t", "c", { approved: true });
// @ts-expect-error The token is no number.
open({ token: 1 });
