// Web Locks and BroadcastChannels for several tabs in one process.
//
// Knows nothing of elections. Node has no lock manager yet, and real channels would deliver at times of their own.

export class FakeTabs {
  #locks = new Map(); // name -> { holder, queue }
  #channels = new Set();

  /** What one tab sees. A frozen tab is delivered nothing until it thaws. */
  environment(tab) {
    return {
      locks: { request: (...asked) => (tab.sandboxed ? Promise.reject(notAllowed()) : this.#request(...asked)) },
      channel: (name) => this.#channel(name, tab),
    };
  }

  #request(name, { steal = false, signal }, callback) {
    const lock = this.#locks.get(name) ?? { queue: [] };
    this.#locks.set(name, lock);
    return new Promise((resolve, reject) => {
      const request = { callback, resolve, reject };
      if (steal) {
        lock.holder?.reject(abortError());
        lock.holder = undefined;
        lock.queue.unshift(request);
      } else {
        lock.queue.push(request);
      }
      signal?.addEventListener("abort", () => {
        lock.queue = lock.queue.filter((other) => other !== request);
        if (lock.holder !== request) reject(signal.reason);
      });
      queueMicrotask(() => this.#grant(lock));
    });
  }

  #grant(lock) {
    if (lock.holder || lock.queue.length === 0) return;
    const holder = (lock.holder = lock.queue.shift());
    const release = () => {
      if (lock.holder !== holder) return;
      lock.holder = undefined;
      this.#grant(lock);
    };
    Promise.resolve(holder.callback()).then(holder.resolve, holder.reject).then(release);
  }

  #channel(name, tab) {
    const channel = {
      name,
      tab,
      postMessage: (data) => {
        if (!this.#channels.has(channel)) throw new Error("the channel is closed");
        const copy = structuredClone(data);
        for (const other of this.#channels) {
          if (other !== channel && other.name === name) queueMicrotask(() => deliver(other, copy));
        }
      },
      close: () => this.#channels.delete(channel),
    };
    this.#channels.add(channel);
    return channel;
  }
}

function deliver(channel, data) {
  if (!channel.tab.frozen) channel.onmessage?.({ data });
}

function notAllowed() {
  return new DOMException("no locks in a sandbox", "SecurityError");
}

function abortError() {
  return new DOMException("taken by another tab", "AbortError");
}
