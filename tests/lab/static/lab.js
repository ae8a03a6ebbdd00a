// The connection lab's page: starts both columns side by side, strikes them alike, and shows what became of each.
//
// Knows nothing of how a column talks to its server (durable.js, naive.js), of how events are counted (tally.js) or of the
// chart's geometry (timeline.js). What only the servers know it asks of the control API, twice a second.

import { DurableChat } from "./durable.js";
import { NaiveChat } from "./naive.js";
import { Tally } from "./tally.js";
import { drawColumn } from "./column.js";
import { draw } from "./timeline.js";

const LAST = 60;
const QUICK_TOOL_SECONDS = 3;
const LOOK_MS = 500;
const WORDS = {
  cut: "cut", kill: "kill -9", hole: "black hole", throttle: "throttle", pause: "pause", store: "store away",
};
const OVER = { throttle: "wide again", pause: "it goes on", store: "the store is back" };

class Lab {
  constructor() {
    this.columns = [];
    this.marks = [];
    this.log = [];
    this.problems = {};
    this.startedAt = performance.now();
    this.seen = { durable: {}, naive: {}, troubles: {} };
    element("start").addEventListener("click", () => this.start(QUICK_TOOL_SECONDS));
    element("slow").addEventListener("click", () => this.start(this.settings.tool_seconds));
    for (const button of document.querySelectorAll("[data-trouble]")) {
      button.addEventListener("click", () => this.strike(button.dataset.trouble));
    }
    addEventListener("resize", () => this.draw());
  }

  async open() {
    this.settings = await (await fetch("/api/settings")).json();
    element("last").textContent = LAST;
    element("idle").textContent = this.settings.idle_seconds;
    element("slow").textContent = `Start with a ${this.settings.tool_seconds} s tool`;
    this.draw();
    this.look();
  }

  /** Ask both columns anew. */
  start(toolSeconds) {
    for (const { chat } of this.columns) chat.close();
    this.startedAt = performance.now();
    this.marks = this.marks.filter((mark) => mark.until === Infinity).map((mark) => ({ ...mark, at: 0 }));
    this.log = [];
    this.seen = { ...this.seen, durable: {}, naive: {} };
    this.columns = [this.column("durable", DurableChat), this.column("naive", NaiveChat)];
    const prompt = JSON.stringify({ last: LAST, tool_seconds: toolSeconds });
    for (const { name, chat } of this.columns) {
      chat.start(prompt).catch((error) => this.note(`${name}: ${error.message}`));
    }
    this.draw();
  }

  column(name, Chat) {
    const tally = new Tally(0);
    const column = { name, tally };
    const told = {
      shown: (run, number) => { tally.show(run, number, this.now()); this.draw(); },
      rewound: (run, numbers) => tally.rewind(run, numbers, this.now()),
      withdrawn: (count) => tally.withdraw(count),
      again: (run) => tally.begin(run, this.now()),
      ended: () => tally.end(this.now()),
      changed: () => this.noteStatus(column),
    };
    column.chat = new Chat(told, this.settings);
    return column;
  }

  noteStatus(column) {
    const { name, chat: { status } } = column;
    if (status !== column.status && status !== "connecting") this.note(`${name}: ${status}`);
    column.status = status;
    this.draw();
  }

  /** Do something to both columns; what lasts is taken back by the second click. */
  async strike(trouble) {
    const lasts = trouble in OVER;
    const on = !(lasts && this.seen.troubles[trouble]);
    const troubles = await this.ask(trouble, on).catch(() => undefined);
    this.tell("strike", troubles ? "" : "The lab could not do that. Try again.");
    if (!troubles) return;
    this.seen.troubles = troubles;
    this.mark(trouble, lasts, on);
  }

  /** Have something done by the lab; resolves to what lasts now, or to nothing where it could not. */
  async ask(trouble, on) {
    const answer = await fetch(`/api/troubles/${trouble}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ session: this.chatId("durable"), on }),
    });
    return answer.ok ? (await answer.json()).troubles : undefined;
  }

  mark(trouble, lasts, on) {
    if (on) this.marks.push({ label: WORDS[trouble], trouble, at: this.now(), until: lasts ? Infinity : undefined });
    const lasting = this.marks.findLast((mark) => mark.trouble === trouble && mark.until === Infinity);
    if (!on && lasting) lasting.until = this.now();
    this.note(on ? WORDS[trouble] : OVER[trouble]);
  }

  /** Say what is wrong with `what` is asked for, until it goes well. */
  tell(what, words) {
    this.problems = { ...this.problems, [what]: words };
    const told = Object.values(this.problems).filter(Boolean).join(" ");
    if (element("problem").textContent !== told) element("problem").textContent = told;
  }

  note(words) {
    this.log.push({ at: this.now(), words });
    this.draw();
  }

  /** Ask what only the servers know, for ever. */
  async look() {
    const query = new URLSearchParams({ session: this.chatId("durable"), chat: this.chatId("naive") });
    try {
      const answer = await fetch(`/api/look?${query}`);
      // What was asked about another start than the present one is no news.
      if (answer.ok && query.get("chat") === this.chatId("naive")) this.see(await answer.json());
      this.tell("look", "");
    } catch {
      this.tell("look", "The lab does not answer. Is it still running?");
    }
    this.draw();
    setTimeout(() => this.look(), LOOK_MS);
  }

  see(seen) {
    if (seen.idle_cuts > this.seen.idle_cuts) this.marks.push({ label: "cut as idle", at: this.now() });
    this.seen = seen;
  }

  chatId(name) {
    return this.columns.find((column) => column.name === name)?.chat.id ?? "";
  }

  now() {
    return performance.now() - this.startedAt;
  }

  draw() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = undefined;
      this.drawNow();
    });
  }

  drawNow() {
    const now = this.now();
    for (const button of document.querySelectorAll("[aria-pressed]")) {
      button.setAttribute("aria-pressed", String(Boolean(this.seen.troubles[button.dataset.trouble])));
    }
    for (const name of ["durable", "naive"]) {
      const column = this.columns.find((one) => one.name === name);
      const { said = {}, bookings = 0, servers = [] } = this.seen[name];
      drawColumn(element(name), { chat: column?.chat, counts: column?.tally.counts(now, said), bookings, servers });
    }
    const ends = this.columns.map(({ tally }) => tally.endedAt ?? now);
    const lines = this.columns.map(({ name, tally }) => ({ name, points: tally.points, endMs: tally.endedAt ?? now }));
    draw(element("timeline"), lines, this.marks, Math.max(0, ...ends));
    element("log").replaceChildren(...this.log.slice(-LOG_LINES).map(logLine));
  }
}

const LOG_LINES = 8;

function logLine({ at, words }) {
  const line = document.createElement("li");
  line.textContent = `${(at / 1000).toFixed(1)} s  ${words}`;
  return line;
}

function element(id) {
  return document.getElementById(id);
}

new Lab().open();
