// The parser: whatever an event stream may look like, and however its bytes are cut.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";

import { Parser } from "../../../edge/static/unbroken/unbroken.js";

const { streams } = JSON.parse(readFileSync(new URL("../../support/event_streams.json", import.meta.url)));
const ENDS = { LF: "\n", CR: "\r", CRLF: "\r\n" };

function parse(pieces) {
  const parser = new Parser();
  const blocks = pieces.flatMap((piece) => parser.push(piece));
  return { blocks, lastEventId: parser.lastEventId };
}

function expected({ messages, last_event_id }) {
  const blocks = messages.map(({ type, data, id, retry_ms }) => ({ type, id, data, retryMs: retry_ms }));
  return { blocks, lastEventId: last_event_id };
}

for (const stream of streams) {
  for (const [name, end] of Object.entries(ENDS)) {
    const bytes = new TextEncoder().encode(stream.text.replaceAll("\n", end));

    test(`${stream.name}, with ${name}, whole and byte by byte`, () => {
      assert.deepEqual(parse([bytes]), expected(stream));
      assert.deepEqual(parse([...bytes].map((byte) => Uint8Array.of(byte))), expected(stream));
    });

    test(`${stream.name}, with ${name}, cut at every byte`, () => {
      for (let at = 0; at <= bytes.length; at += 1) {
        assert.deepEqual(parse([bytes.subarray(0, at), bytes.subarray(at)]), expected(stream), `cut at ${at}`);
      }
    });
  }
}

test("line ends may be mixed", () => {
  const bytes = new TextEncoder().encode("id: 1\r\nevent: a\rdata: x\n\r\ndata: y\r\r");
  assert.deepEqual(parse([bytes]).blocks.map(({ type, data }) => [type, data]), [["a", "x"], ["message", "y"]]);
});

test("a piece without a byte parts no line end", () => {
  const pieces = ["data: x\r", "", "\ndata: y\n\n"].map((piece) => new TextEncoder().encode(piece));
  assert.deepEqual(parse(pieces).blocks.map(({ data }) => data), ["x\ny"]);
});

test("a parser goes on from the id that its reader had", () => {
  const [block] = new Parser("3-7").push(new TextEncoder().encode("event: caught_up\ndata: {}\n\n"));
  assert.equal(block.id, "3-7");
});

test("a long line in small pieces costs no more than its length", () => {
  const parser = new Parser();
  const piece = new TextEncoder().encode("x".repeat(16));
  parser.push(new TextEncoder().encode("data: "));
  for (let n = 0; n < 20_000; n += 1) assert.deepEqual(parser.push(piece), []);
  const [block] = parser.push(new TextEncoder().encode("\n\n"));
  assert.equal(block.data.length, 320_000);
});
