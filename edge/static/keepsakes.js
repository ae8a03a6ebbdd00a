// What the page keeps for its own reload: in sessionStorage, or where the browser gives it none (forbidden, full) for
// as long as the page lives.
//
// Knows nothing of what is kept.

const spare = new Map();

export function keep(name, text) {
  forget(name); // what the browser holds of it would be older than what it has no room for
  try {
    sessionStorage.setItem(name, text);
  } catch {
    spare.set(name, text);
  }
}

export function kept(name) {
  return spare.get(name) ?? ask((storage) => storage.getItem(name)) ?? undefined;
}

export function forget(name) {
  spare.delete(name);
  ask((storage) => storage.removeItem(name));
}

/** Return what `question` finds in the browser's storage; nothing where that is forbidden. */
function ask(question) {
  try {
    return question(sessionStorage);
  } catch {
    return undefined;
  }
}
