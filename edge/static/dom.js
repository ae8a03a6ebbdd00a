// Elements, made and changed. Text stays text: nothing here, and so nothing on the page, makes markup of it.
//
// Knows nothing of conversations.

/** A new element with a class and children, elements or texts. */
export function node(tag, className = "", children = []) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

/** A button that submits nothing. */
export function button(text, action, className = "") {
  const made = node("button", className, [text]);
  made.type = "button";
  made.addEventListener("click", action);
  return made;
}

/** Make `nodes` the children of `parent`, moving as little as possible: what is moved loses focus and selection. */
export function setChildren(parent, nodes) {
  const kept = new Set(nodes);
  for (const child of [...parent.childNodes]) if (!kept.has(child)) child.remove();
  nodes.forEach((child, at) => {
    if (parent.childNodes[at] !== child) parent.insertBefore(child, parent.childNodes[at] ?? null);
  });
}

/** Set a text only when it is another, for a live region reads out whatever is set. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Make an element's text longer where it only grows: that costs the same however long it is, and keeps a selection. */
export function growText(element, text) {
  const known = element.firstChild;
  if (!known) element.textContent = text;
  else if (!text.startsWith(known.data)) known.data = text;
  else if (text.length > known.length) known.appendData(text.slice(known.length));
}

export function byId(id) {
  return document.getElementById(id);
}
