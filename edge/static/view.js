// The page: how it is connected, the conversation, and where a person types.
//
// Knows nothing of the network. It is told what to show, as often as something changes, and tells what a person does.

import { byId, setText } from "./dom.js";
import { Transcript } from "./transcript.js";
import { openTurn } from "./unbroken/unbroken.js";
import { BUSY, connectionWords, heardWords, isPending, statusWords, troubleWords } from "./words.js";

const NEAR_END_PX = 80;

export class View {
  #actions;
  #transcript;
  #input = byId("input");
  #turn;
  #last; // the newest turn as it was drawn last; missing before the first drawing of a session
  #status = "";
  #hint = "";
  #follow = true;

  /** `actions` are what a person does: send, stop, decide, restart, reconnect, keepDraft. */
  constructor(actions) {
    this.#actions = actions;
    this.#transcript = new Transcript(byId("transcript"), {
      decide: (...decision) => this.#act(() => actions.decide(...decision)),
      send: (...input) => this.#act(() => this.#send(...input)),
    });
    this.#listen();
    this.#fit();
  }

  #listen() {
    const { stop, restart, reconnect } = this.#actions;
    const clicks = { stop, new: restart, fresh: restart, reconnect, latest: () => this.#scroll(true) };
    for (const [id, action] of Object.entries(clicks)) {
      byId(id).addEventListener("click", () => this.#act(action));
    }
    byId("help").addEventListener("click", () => this.#act(() => this.#send("help")));
    byId("composer").addEventListener("submit", (event) => this.#submit(event));
    this.#input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) this.#submit(event);
    });
    this.#input.addEventListener("input", () => this.#typed());
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !event.isComposing && !byId("stop").hidden) stop();
    });
    addEventListener("scroll", () => this.#offerLatest(), { passive: true });
    addEventListener("resize", () => this.#fit());
  }

  /** Act, and leave the focus where typing goes on, for what was clicked may vanish. */
  #act(action) {
    // Where fingers type, that would bring up a keyboard over what was asked for.
    if (matchMedia("(pointer: fine)").matches) this.#input.focus({ preventScroll: true });
    return action();
  }

  #submit(event) {
    event.preventDefault();
    const text = this.#input.value.trim();
    if (!text) return;
    if (byId("send").disabled) return this.#say(this.#turn ? BUSY : "");
    this.fill("");
    this.#actions.keepDraft("");
    this.#send(text);
  }

  #send(input, agent) {
    this.#follow = true;
    this.#actions.send(input, agent);
  }

  #typed() {
    this.#fit();
    this.#say("");
    this.#actions.keepDraft(this.#input.value);
  }

  /** Put a text where a person types. */
  fill(text) {
    this.#input.value = text;
    this.#fit();
  }

  /** Make ready for another session. */
  clear() {
    this.fill("");
    this.problem("");
    setText(byId("heard"), "");
    this.#last = undefined;
    this.#follow = true;
  }

  #fit() {
    const { style, offsetHeight, clientHeight } = this.#input;
    style.height = "auto";
    style.height = `${this.#input.scrollHeight + offsetHeight - clientHeight}px`;
  }

  /** Say something until the next key or the end of the turn; else the status says what is awaited. */
  #say(hint) {
    this.#hint = hint;
    setText(byId("status"), hint || this.#status);
  }

  /** Say what went wrong, or that nothing does any more. */
  problem(text) {
    setText(byId("problem"), text);
  }

  /** Draw the page: `view` and `connection` of its session, and what is known beside them. */
  draw(page) {
    const isPinned = this.#follow || this.#isAtEnd();
    const { turns } = page.view;
    const isWaiting = isPending(page.view, page.unsent);
    this.#follow = !page.ready;
    this.#turn = openTurn(page.view);
    this.#drawConnection(page);
    this.#drawComposer(page, isWaiting);
    byId("empty").hidden = !page.ready || turns.length > 0 || isWaiting;
    byId("transcript").setAttribute("aria-busy", String(this.#turn?.state === "running"));
    this.#transcript.draw({ turns, unsent: page.unsent, answered: page.answered });
    this.#tell(page.ready && turns.at(-1));
    this.#scroll(isPinned);
  }

  #drawConnection({ view, connection, missing = "" }) {
    const status = byId("connection");
    setText(status, connectionWords(connection, view.degraded));
    status.dataset.state = connection.state === "live" && view.degraded ? "degraded" : connection.state;
    status.hidden = Boolean(missing);
    const trouble = missing ? "" : troubleWords(connection, Boolean(this.#turn));
    byId("trouble").hidden = !trouble;
    setText(byId("trouble").firstElementChild, trouble);
    byId("missing").hidden = !missing;
    setText(byId("missing").firstElementChild, missing);
  }

  #drawComposer({ quiet, stopping, ready }, isWaiting) {
    const turn = this.#turn;
    byId("stop").hidden = !turn;
    byId("send").hidden = Boolean(turn);
    byId("send").disabled = Boolean(turn || isWaiting || !ready);
    this.#status = statusWords({ turn, pending: isWaiting, quiet, stopping });
    this.#say(turn ? this.#hint : "");
  }

  /** Tell those who do not see it that an answer has ended, or waits. What was there at first is no news. */
  #tell(turn) {
    if (turn === false) return;
    if (this.#last) setText(byId("heard"), heardWords(this.#last.turn, turn) ?? byId("heard").textContent);
    this.#last = { turn };
  }

  #isAtEnd() {
    return innerHeight + scrollY >= document.documentElement.scrollHeight - NEAR_END_PX;
  }

  #scroll(isPinned) {
    if (isPinned) scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
    this.#offerLatest();
  }

  #offerLatest() {
    byId("latest").hidden = this.#isAtEnd();
  }
}
