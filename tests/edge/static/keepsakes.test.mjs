// What the page keeps for its reload, and that a browser without room for it costs no more than that.

import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { forget, keep, kept } from "../../../edge/static/keepsakes.js";

/** A browser's storage, as much of it as is used. */
class Storage extends Map {
  isFull = false;

  setItem(name, text) {
    if (this.isFull) throw new DOMException("full", "QuotaExceededError");
    this.set(name, text);
  }

  getItem(name) {
    return this.get(name) ?? null;
  }

  removeItem(name) {
    this.delete(name);
  }
}

let storage;

function give(get) {
  Object.defineProperty(globalThis, "sessionStorage", { configurable: true, get });
}

beforeEach(() => {
  storage = new Storage();
  give(() => storage);
});

test("what is kept is where a reload finds it, until it is forgotten", () => {
  keep("a", "1");
  assert.equal(storage.get("a"), "1");
  assert.equal(kept("a"), "1");
  forget("a");
  assert.equal(storage.size, 0);
  assert.equal(kept("a"), undefined);
});

test("a storage that is full keeps nothing older than what was kept last", () => {
  keep("b", "old");
  storage.isFull = true;
  keep("b", "new");
  assert.equal(kept("b"), "new");
  assert.equal(storage.size, 0);
  forget("b");
  assert.equal(kept("b"), undefined);
});

test("a page that may store nothing keeps it for as long as it lives", () => {
  give(() => {
    throw new DOMException("no", "SecurityError");
  });
  assert.equal(kept("c"), undefined);
  keep("c", "3");
  assert.equal(kept("c"), "3");
  forget("c");
  assert.equal(kept("c"), undefined);
});
