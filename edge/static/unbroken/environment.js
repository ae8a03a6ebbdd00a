// What a browser (or Node) offers, as one object: network, time, chance, signs of life, other tabs.
//
// Knows nothing of sessions. Everything else in this library asks only this object, so tests can give another.

/** The environment of the page or process at hand. */
export function hostEnvironment() {
  return {
    fetch: (url, init) => fetch(url, init),
    now: () => Date.now(),
    random: () => Math.random(),
    newKey,
    setTimeout: (callback, ms) => setTimeout(callback, ms),
    clearTimeout: (timer) => clearTimeout(timer),
    isOnline: () => globalThis.navigator?.onLine !== false,
    isVisible: () => globalThis.document?.visibilityState !== "hidden",
    onSign,
    raise,
    tabs: tabs(),
  };
}

/**
 * An environment with one sign more, "wanted" (somebody asks to try again, now), and what gives that.
 */
export function withWanted(environment) {
  const listeners = new Set();
  const onSign = (listener) => {
    const stopListening = environment.onSign(listener);
    listeners.add(listener);
    return () => {
      stopListening();
      listeners.delete(listener);
    };
  };
  const want = () => [...listeners].forEach((listener) => listener("wanted"));
  return [{ ...environment, onSign }, want];
}

/**
 * Call `listener` with "online", "offline", "visible" (the tab is looked at again), "left" (the page goes, perhaps
 * into the back/forward cache) or "restored" (it comes back out of that, where every connection has died). Returns
 * what ends it.
 */
function onSign(listener) {
  const signs = [
    [globalThis, "online", () => listener("online")],
    [globalThis, "offline", () => listener("offline")],
    [globalThis, "focus", () => listener("visible")],
    [globalThis, "pagehide", () => listener("left")],
    [globalThis, "pageshow", (event) => event.persisted && listener("restored")],
    [globalThis.document, "visibilitychange", () => document.visibilityState === "visible" && listener("visible")],
  ].filter(([target]) => target?.addEventListener);
  for (const [target, type, react] of signs) target.addEventListener(type, react);
  return () => {
    for (const [target, type, react] of signs) target.removeEventListener(type, react);
  };
}

/** Let an error be told as if nobody had been there to catch it. */
function raise(error) {
  queueMicrotask(() => {
    throw error;
  });
}

/** What tabs of one browser share a stream with; nothing where something is missing (http on a LAN, Node). */
function tabs() {
  const { document, navigator, BroadcastChannel } = globalThis;
  if (!document || !navigator?.locks || !BroadcastChannel) return undefined;
  return { locks: navigator.locks, channel: (name) => new BroadcastChannel(name) };
}

/** A key that nobody else has. `crypto.randomUUID` is missing on pages that were not loaded over https or from this machine. */
export function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
