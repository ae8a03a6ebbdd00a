// The geometry of the lab's chart.

import assert from "node:assert/strict";
import { test } from "node:test";

import { scales, stepPath, tickMs } from "./static/timeline.js";

test("a chart never has more ticks than can be read", () => {
  assert.equal(tickMs(20_000), 5_000);
  assert.equal(tickMs(41_000), 10_000);
  assert.equal(tickMs(3_600_000), 300_000);
});

test("a number stays until the next one, and the last one until the end", () => {
  const points = [{ at: 0, number: 0 }, { at: 2, number: 5 }, { at: 3, number: 1 }];
  assert.equal(stepPath(points, (at) => at * 10, (number) => -number, 9), "M0 0H20V-5H30V-1H90");
});

test("both columns share their scales, which do not move for small numbers", () => {
  const columns = [{ points: [{ at: 0, number: 3 }] }, { points: [{ at: 0, number: 80 }] }];
  const { spanMs, top, toX, toY } = scales(450, 248, columns, 5_000);
  assert.deepEqual([spanMs, top], [20_000, 80]);
  assert.deepEqual([toX(0), toX(20_000), toY(0), toY(80)], [34, 434, 226, 26]);
});
